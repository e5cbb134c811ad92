"""The four policies and where the one in force comes from: argument over variable over default."""

from __future__ import annotations

VARIABLE = "CUDA_FORK_GUARD"
POLICIES = ("off", "watch", "warn", "block")  # the index is csrc/core/fork_state.hpp's Policy
DEFAULT = "watch"

OFF, WATCH, WARN, BLOCK = range(4)


def parse(name: object) -> int:
    """The policy's number.

    :raises ValueError: not one of the four names.
    """
    if isinstance(name, str) and name in POLICIES:
        return POLICIES.index(name)
    raise ValueError(f"unknown policy {name!r}: choose one of {', '.join(map(repr, POLICIES))}")


def from_variable(value: str | None) -> tuple[int, str | None]:
    """(policy, complaint) for the variable's value; unset or empty means the default."""
    if not value:
        return parse(DEFAULT), None
    if value in POLICIES:
        return parse(value), None
    return parse(DEFAULT), (
        f"{VARIABLE}={value!r} is not a policy: choose one of {', '.join(POLICIES)}. "
        f"The policy is {DEFAULT!r} until then."
    )

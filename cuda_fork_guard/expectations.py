"""What ``verify_worker`` can be asked for."""

from __future__ import annotations

EXPECTATIONS = ("clean", "fresh", "cpu-only")


def check(expect: object, device: object, release_handles: object) -> None:
    """:raises ValueError: an unknown expectation, or arguments that don't go together."""
    if expect not in EXPECTATIONS:
        raise ValueError(f"unknown expectation {expect!r}: choose one of {', '.join(map(repr, EXPECTATIONS))}")
    if expect == "fresh":
        if device is None:
            raise ValueError(
                "expect='fresh' needs device=: the ordinal, as this process sees it, to prove a context on"
            )
        if isinstance(device, bool) or not isinstance(device, int) or not 0 <= device < 2**31:
            raise ValueError(f"device={device!r} is not an ordinal: give a number from 0, as this process sees devices")
    elif device is not None:
        raise ValueError(f"device= goes with expect='fresh' only, not with {expect!r}: nothing is brought up there")
    if release_handles not in (True, False):
        raise ValueError(f"release_handles={release_handles!r}: give True or False")
    if release_handles and expect != "cpu-only":
        raise ValueError(
            f"release_handles=True goes with expect='cpu-only' only: {expect!r} may need the device handles"
        )

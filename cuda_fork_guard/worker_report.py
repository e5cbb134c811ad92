"""``WorkerReport``: what ``verify_worker`` found."""

from __future__ import annotations

from .values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .origin import Origin


class WorkerReport(Value):
    """What ``verify_worker`` found. ``device_uuid`` is the driver's, as ``GPU-…`` in nvidia-smi's form."""

    __slots__ = (
        "pid", "ppid", "start_method", "expect", "driver", "device", "device_uuid", "inherited", "origin",
        "released_handles", "tripwire", "simulated", "reasons",
    )  # fmt: skip
    pid: int
    ppid: int
    start_method: str | None
    expect: str
    driver: str | None
    device: int | None
    device_uuid: str | None
    inherited: bool | None
    origin: Origin | None
    released_handles: int
    tripwire: str
    simulated: bool
    reasons: tuple[str, ...]


def uuid_text(raw: bytes) -> str:
    """``GPU-…``, as nvidia-smi shows it."""
    digits = raw.hex()
    return "GPU-" + "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

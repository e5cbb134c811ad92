"""``Status``: everything the guard can say about this process."""

from __future__ import annotations

from . import state
from .policies import POLICIES
from .values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .evidence import Evidence
    from .origin import Origin


class Status(Value):
    """A frozen picture of this process with regard to CUDA and fork. An unknown is None and says why in ``reasons``.

    ``driver``: ``absent``, ``loaded``, ``tried``, ``initialized``, ``active`` or ``inherited``. ``driver_version``: as
    ``cuDriverGetVersion`` gives it (12040 is CUDA 12.4). ``handles``: open descriptors of CUDA devices. ``threads``:
    names of the live threads, listed and not judged. ``fork_is_safe`` is False exactly if a fork now would be unsafe.
    ``cuda_is_usable`` is False if CUDA was inherited, True if a context is active.
    """

    __slots__ = (
        "supported", "pid", "policy", "driver", "active_devices", "library", "driver_version", "simulated", "origin",
        "inherited", "handles", "threads", "tripwire", "fork_is_safe", "cuda_is_usable", "reasons",
    )  # fmt: skip
    supported: bool
    pid: int
    policy: str
    driver: str | None
    active_devices: tuple[int, ...]
    library: str | None
    driver_version: int | None
    simulated: bool
    origin: Origin | None
    inherited: bool | None
    handles: tuple[str, ...] | None
    threads: tuple[str, ...] | None
    tripwire: str
    fork_is_safe: bool | None
    cuda_is_usable: bool | None
    reasons: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON, with ``"schema": 1``."""
        return {"schema": 1, **super().as_dict()}

    def with_reasons(self, more: tuple[str, ...]) -> Status:
        """The same with more reasons."""
        return Status(**{**dict(self._fields()), "reasons": (*self.reasons, *more)})

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def unsupported(pid: int, policy: int, why: str) -> Status:
    """The status where there is no native module: every fact that it would give is unknown."""
    return Status(
        supported=False,
        pid=pid,
        policy=POLICIES[policy],
        driver=None,
        active_devices=(),
        library=None,
        driver_version=None,
        simulated=False,
        origin=None,
        inherited=None,
        handles=None,
        threads=None,
        tripwire="unavailable",
        fork_is_safe=None,
        cuda_is_usable=None,
        reasons=(why,),
    )


def derive(
    evidence: Evidence,
    *,
    origin: Origin | None,
    origin_reason: str,
    threads: tuple[str, ...] | None,
    threads_reason: str,
) -> Status:
    """The status that this evidence means."""
    reasons: list[str] = []
    because = reasons.append
    inherited = state.inherited_of(evidence, because)
    driver = state.driver_of(evidence, inherited, because)
    safe = state.fork_is_safe_of(evidence, inherited, driver, because)
    if origin is None and origin_reason:
        because(f"origin: {origin_reason}")
    if evidence.handles is None:
        because(f"handles: unknown: {evidence.handles_error}")
    if threads is None:
        because(f"threads: unknown: {threads_reason}")
    if not evidence.python_forks_seen:
        because(
            "forks: Python's forks aren't seen: another audit hook refused the guard's, or it was imported "
            "in a subinterpreter only; only children know of them"
        )
    if evidence.handlers_error:
        because(f"forks: pthread_atfork failed with error {evidence.handlers_error}: native forks aren't seen")
    if not evidence.ring:
        because("events: no shared memory could be had, nothing is recorded")
    if evidence.tripwire_reason:
        because(f"tripwire: {evidence.tripwire_reason}")
    return Status(
        supported=True,
        pid=evidence.pid,
        policy=POLICIES[evidence.policy],
        driver=driver,
        active_devices=evidence.active or () if not inherited else (),
        library=evidence.path or None,
        driver_version=evidence.version or None,
        simulated=evidence.simulated,
        origin=origin,
        inherited=inherited,
        handles=evidence.handles,
        threads=threads,
        tripwire=evidence.tripwire,
        fork_is_safe=safe,
        cuda_is_usable=state.usable_of(inherited, driver),
        reasons=tuple(reasons),
    )


def _word(value: object) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value)


def _version(number: int | None) -> str:
    return f"CUDA {number // 1000}.{number % 1000 // 10}" if number else "version unknown"


def _lines(status: Status) -> list[str]:
    library = "none loaded"
    if status.library:
        library = f"{status.library} ({_version(status.driver_version)}{', simulated' if status.simulated else ''})"
    rows = [
        ("policy", status.policy),
        ("driver", _word(status.driver)),
        ("active devices", _word(status.active_devices)),
        ("library", library),
        ("woken", status.origin.line() if status.origin is not None else "unknown or never"),
        ("inherited", _word(status.inherited)),
        ("device handles", _word(status.handles)),
        ("threads", _word(status.threads)),
        ("tripwire", status.tripwire),
        ("fork is safe", _word(status.fork_is_safe)),
        ("CUDA is usable", _word(status.cuda_is_usable)),
    ]
    lines = [f"cuda_fork_guard status of pid {status.pid}" + ("" if status.supported else " (not supported here)")]
    lines += [f"  {name + ':':<16}{value}" for name, value in rows]
    lines += [f"  because:        {reason}" for reason in status.reasons]
    return lines

"""What was seen, and nothing more: facts from the native module and /proc, gathered at one moment."""

from __future__ import annotations

from .values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

DOWN, TRIED, UP = range(3)  # csrc/core/fork_state.hpp's DriverKnown
NO, YES, UNKNOWN = range(3)  # and Inherited


class Evidence(Value):
    """Facts about this process. Numbers are the native module's; None means that it could not be looked at, and the
    field behind it says why."""

    __slots__ = (
        "pid", "policy", "loader_lost", "libraries", "code", "devices", "active", "path", "version", "simulated",
        "known", "cuinit_calls", "hook_watching", "inherited", "generation", "forked_without_exec",
        "handles", "handles_error", "python_forks_seen", "handlers_error", "ring", "tripwire", "tripwire_reason",
    )  # fmt: skip
    pid: int
    policy: int
    loader_lost: bool  # forked while another thread was inside the loader's list, which can't be read since
    libraries: int
    code: int  # cuDeviceGetCount's answer; -1 not exported, -2 not asked
    devices: int
    active: tuple[int, ...] | None
    path: str
    version: int
    simulated: bool
    known: int
    cuinit_calls: int
    hook_watching: str  # "": every cuInit since libcuda was loaded is counted; else why not
    inherited: int
    generation: int
    forked_without_exec: bool | None  # when the guard was loaded, if it was not loaded by a forebear
    handles: tuple[str, ...] | None
    handles_error: str
    python_forks_seen: bool
    handlers_error: int
    ring: bool
    tripwire: str
    tripwire_reason: str


TRIPWIRE_STATES = ("idle", "unavailable", "prepared", "armed", "tripped")  # csrc/core/tripwire.hpp's State


def gather(
    native: ModuleType, *, hook_watching: str, forked_without_exec: bool | None, handlers_error: int, ring: bool
) -> Evidence:
    """Asks the driver, the fork state and /proc. Wakes and loads nothing."""
    driver = native.driver()
    state = native.state()
    error, handles = native.device_handles()
    tripwire, reason, _entries, _skipped = native.tripwire()
    return Evidence(
        pid=state["pid"],
        policy=state["policy"],
        loader_lost=state["loader_lost"],
        libraries=driver["libraries"],
        code=driver["code"],
        devices=driver["devices"],
        active=driver["active"],
        path=driver["path"],
        version=driver["version"],
        simulated=driver["simulated"],
        known=state["driver"],
        cuinit_calls=state["cuinit_calls"],
        hook_watching=hook_watching,
        inherited=state["inherited"],
        generation=state["generation"],
        forked_without_exec=forked_without_exec,
        handles=None if error else tuple(f"{number} -> {path}" for number, path in handles),
        handles_error=_reason_of(error),
        python_forks_seen=native.python_forks_seen(),
        handlers_error=handlers_error,
        ring=ring,
        tripwire=TRIPWIRE_STATES[tripwire] if state["tripwire_wanted"] or tripwire else "off",
        tripwire_reason=reason,
    )


def _reason_of(error: int) -> str:
    if not error:
        return ""
    import os

    return f"/proc/self/fd: {os.strerror(error)}"

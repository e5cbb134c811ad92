"""What the evidence means. Pure functions: a table of cases is their test."""

from __future__ import annotations

from . import codes
from .evidence import TRIED, UNKNOWN, UP, YES, Evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Because = Callable[[str], None]

_NOT_EXPORTED = -1


def inherited_of(evidence: Evidence, because: Because) -> bool | None:
    """Was this process forked, with no exec since, from a process whose driver was up?"""
    if evidence.inherited == YES:
        return True
    if evidence.generation == 0 and evidence.forked_without_exec is not False:
        return _inherited_before_the_guard(evidence, because)
    if evidence.inherited == UNKNOWN:
        because(
            "inherited: unknown: when this process was forked, cuInit had been called in its parent and the driver was "
            "not seen up (it had failed, or was still running), or the parent did not know of its own inheritance"
        )
        return None
    return False


def _inherited_before_the_guard(evidence: Evidence, because: Because) -> bool | None:
    if evidence.forked_without_exec is None:
        because("inherited: unknown: /proc/self/stat can't be read, so it can't be known if this process was forked")
        return None
    # A forked child has its parent's descriptors, and the driver answers "not initialized" in it. NVML opens the other
    # nodes too, so only nvidia-uvm tells CUDA.
    uvm = any("/dev/nvidia-uvm" in handle for handle in evidence.handles or ())
    if uvm and evidence.code in (codes.NOT_INITIALIZED, -1) and evidence.cuinit_calls == 0:
        because("inherited: an open /dev/nvidia-uvm in a forked process whose own driver is not up")
        return True
    because(
        "inherited: unknown: this process was forked before cuda_fork_guard was loaded in it, and its parent did not "
        "have the guard"
    )
    return None


def driver_of(evidence: Evidence, inherited: bool | None, because: Because) -> str | None:
    """One of the contract's driver states, or None with the reason."""
    if inherited:
        return "inherited"
    if evidence.loader_lost:
        because(
            "driver: unknown: this process was forked while another thread read the loader's list of libraries, and "
            "can't read it any more"
        )
        return None
    if evidence.libraries == 0:
        return "absent"
    if evidence.tripwire == "armed":
        return _state_before_arming(evidence)
    if evidence.code == 0:
        if evidence.active is None:
            because("driver: it is up; whether a primary context is active could not be asked")
            return None
        return "active" if evidence.active else "initialized"
    if evidence.code == _NOT_EXPORTED:
        because(f"driver: unknown: {evidence.path} does not export cuDeviceGetCount")
        return None
    if evidence.code != codes.NOT_INITIALIZED:
        because(f"driver: {evidence.path} answered {codes.describe(evidence.code)} to cuDeviceGetCount")
        if evidence.known == UP:
            because("driver: it had been up before, and is being taken down")
            return None
    if evidence.known == TRIED:  # and not the count of calls: a simulated driver was up and is taken down again
        return "tried"
    if evidence.hook_watching:
        because(
            f"driver: loaded, and not up; whether cuInit was called and failed is unknown: {evidence.hook_watching}"
        )
        return None
    return "loaded"


def _state_before_arming(evidence: Evidence) -> str:
    # The driver can't be asked without tripping the wire, and can't have come up without tripping it either.
    return "tried" if evidence.known == TRIED else "loaded"


def fork_is_safe_of(evidence: Evidence, inherited: bool | None, driver: str | None, because: Because) -> bool | None:
    """False exactly if a fork now would be unsafe."""
    if inherited or evidence.known == UP or evidence.code == 0:
        return False
    if inherited is None:
        because("fork_is_safe: unknown, as is whether CUDA was inherited")
        return None
    if driver is None and evidence.code != codes.NOT_INITIALIZED:
        because("fork_is_safe: unknown, as is the driver's state")
        return None
    return True


def was_up(evidence: Evidence) -> bool:
    """The driver was seen up in this process, whatever it answers now."""
    return evidence.known == UP or evidence.code == 0


def usable_of(inherited: bool | None, driver: str | None) -> bool | None:
    """False if inherited, True if a context is active: anything else can only be found out by waking CUDA."""
    if inherited:
        return False
    return True if driver == "active" else None

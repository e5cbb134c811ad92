"""``verify_worker``: is this process fit for CUDA, or safely away from it?"""

from __future__ import annotations

import os
import sys

from . import codes, event_log, expectations, guard, state, waking
from .decision import USE_FORKSERVER
from .errors import (
    DriverUnavailableError,
    ForkServerNotCleanError,
    InheritedCudaError,
    NoSuchDeviceError,
    WorkerError,
    WorkerNotCleanError,
    WrongDeviceError,
)
from .forkers import PLAIN
from .start_of_process import start_method
from .worker_report import WorkerReport, uuid_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from .evidence import Evidence


def verify(expect: str, device: int | None, release_handles: bool) -> WorkerReport:
    """See the package's ``verify_worker``."""
    expectations.check(expect, device, release_handles)
    native = guard.native
    try:
        if native is None:
            found = _verify_unsupported(expect)
        elif expect == "clean":
            found = _verify_clean(native)
        elif expect == "fresh":
            assert device is not None
            found = _verify_fresh(native, device)
        else:
            found = _verify_cpu_only(native, release_handles)
    except (WorkerError, ForkServerNotCleanError) as error:
        guard.record(event_log.WORKER, f"{expect}: {str(error).splitlines()[0]}")
        raise
    guard.record(event_log.WORKER, f"{expect}: verified ({found.start_method or 'start method unknown'})")
    return found


def _facts(native: ModuleType) -> tuple[Evidence, bool | None, str | None, list[str]]:
    native.settle_cuinit()
    reasons: list[str] = []
    found = guard.current_evidence(native)
    inherited = state.inherited_of(found, reasons.append)
    return found, inherited, state.driver_of(found, inherited, reasons.append), reasons


def _refuse_inherited(native: ModuleType, expect: str, inherited: bool | None) -> None:
    if not inherited:
        return
    forked, woken, advice, use = native.own_site()
    woken = woken or waking.woken_line(native)
    forked = forked or "unknown: before cuda_fork_guard was loaded"
    told = f"\n  forked:  {forked}\n  woken:   {woken}"
    if use == USE_FORKSERVER:
        raise ForkServerNotCleanError(
            "[CFG302] this worker was forked by a forkserver in which CUDA is up: CUDA can't work in it." + told +
            "\n  do:      keep the module that wakes CUDA out of the forkserver's preloads (and, from Python 3.14, out of "
            "the main script's module level), or use cuda_fork_guard.get_context('spawn')"
        )  # fmt: skip
    raise InheritedCudaError(
        f"[CFG201] worker (pid {os.getpid()}) was forked from a process in which CUDA was up: CUDA can't work here "
        f"(expected {expect!r})." + told + f"\n  do:      {advice or PLAIN.advice}; or, if this worker never "
        "uses CUDA, verify it with expect='cpu-only'"
    )


def _own_driver_up(found: Evidence, driver: str | None) -> bool:
    return driver in ("initialized", "active") or (driver is None and state.was_up(found))


def _verify_clean(native: ModuleType) -> WorkerReport:
    found, inherited, driver, reasons = _facts(native)
    _refuse_inherited(native, "clean", inherited)
    if _own_driver_up(found, driver):
        where = f", with a context on device {', '.join(map(str, found.active))}" if found.active else ""
        raise WorkerNotCleanError(
            f"[CFG202] worker (pid {os.getpid()}) already has CUDA {driver or 'up'}{where} before its work began: its "
            f"own code woke it.\n  woken:   {waking.woken_line(native)}\n  do:      keep that line out of what the "
            "worker imports, or expect 'fresh' if this worker is meant to use CUDA"
        )
    if driver is None and found.code != codes.NOT_INITIALIZED:
        raise DriverUnavailableError("[CFG204] it can't be verified that there is no CUDA here: " + "; ".join(reasons))
    if driver == "tried":
        reasons.append("driver: cuInit was called in this process; the driver is not up: it failed, or still runs")
    return _report(native, "clean", found, inherited, driver, reasons)


def _verify_fresh(native: ModuleType, device: int) -> WorkerReport:
    _found, inherited, _driver, _reasons = _facts(native)
    _refuse_inherited(native, "fresh", inherited)
    if native.tripwire()[0] == native.TRIPWIRE_ARMED:
        raise WorkerNotCleanError(
            "[CFG202] this process was verified as 'cpu-only' before: it must not use CUDA, so no context is made"
        )
    proof = native.prove_context(ordinal=device, load=True)
    _raise_unproved(native, proof, device)
    found, inherited, driver, reasons = _facts(native)
    others = [ordinal for ordinal in found.active or () if ordinal != device]
    if others:
        raise WrongDeviceError(_wrong_device(device, others[0], native))
    return _report(native, "fresh", found, inherited, driver, reasons, device=device, uuid=proof["uuid"])


# csrc/core/context_proof.hpp's ProofResult
_PROVED, _NO_SUCH_DEVICE, _OTHER_DEVICE, _NOT_EXPORTED, _FAILED, _WRONG_DATA = range(6)


def _raise_unproved(native: ModuleType, proof: dict[str, Any], device: int) -> None:
    if not proof["found"]:
        raise DriverUnavailableError(
            f"[CFG204] no CUDA driver to make a context with: {proof['why']}\n  do:      run on a machine with NVIDIA's "
            "driver, or inside cuda_fork_guard.testing.simulated_cuda()"
        )
    result = proof["result"]
    if result == _NO_SUCH_DEVICE:
        count = proof["devices"]
        raise NoSuchDeviceError(
            f"[CFG203] device {device} does not exist: this process sees {count} device{'s' * (count != 1)}"
            f" ({f'0 to {count - 1}; ' if count else ''}"
            f"CUDA_VISIBLE_DEVICES={os.environ.get('CUDA_VISIBLE_DEVICES', 'not set')})"
        )
    if result == _OTHER_DEVICE:
        raise WrongDeviceError(_wrong_device(device, proof["other"], native))
    if result == _NOT_EXPORTED:
        raise DriverUnavailableError(f"[CFG204] the loaded libcuda does not export {proof['function']}: it is too old")
    if result == _FAILED:
        raise DriverUnavailableError(
            f"[CFG204] {proof['function']} returned {codes.describe(proof['code'])}: no context on device {device} "
            "can be proved in this process"
        )
    if result == _WRONG_DATA:
        raise DriverUnavailableError(
            f"[CFG204] device {device} read back other data than was written to it: its context in this process is "
            "not sound"
        )


def _wrong_device(device: int, other: int, native: ModuleType) -> str:
    return (
        f"[CFG203] worker (pid {os.getpid()}) should use device {device}, but a context is active on device {other}.\n"
        f"  woken:   {waking.woken_line(native)}\n  do:      set the device before anything allocates "
        f"(torch.cuda.set_device({device})), or expect device {other}"
    )


def _verify_cpu_only(native: ModuleType, release_handles: bool) -> WorkerReport:
    found, inherited, driver, reasons = _facts(native)
    if not inherited and _own_driver_up(found, driver):
        raise WorkerNotCleanError(
            f"[CFG202] worker (pid {os.getpid()}) should never use CUDA, but its own code has it {driver or 'up'}.\n"
            f"  woken:   {waking.woken_line(native)}\n  do:      keep that line out of what the worker imports"
        )
    waking.arm(native, reasons)
    released = 0
    if release_handles:
        released = native.release_device_handles()
        if released < 0:
            raise WorkerError(
                f"[CFG205] the inherited device handles can't be released: {os.strerror(-released)}; this worker "
                "keeps GPU memory alive as long as it lives"
            )
        reasons += _mapped_devices()
    found = guard.current_evidence(native)
    return _report(native, "cpu-only", found, inherited, driver, reasons, released=released)


def _mapped_devices() -> list[str]:
    """A mapping holds its device as a descriptor does. It is left alone: pinned host memory that the parent filled may be
    in use, and would be gone."""
    from .device_nodes import device_node

    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as stream:
            rows = [line.split(maxsplit=5) for line in stream]
    except OSError as error:
        return [f"released_handles: if devices are mapped too is unknown: {error}"]
    nodes = sorted({node for row in rows if len(row) == 6 and (node := device_node(row[5].strip()))})
    if not nodes:
        return []
    return [f"released_handles: still mapped, so memory behind them stays alive: {', '.join(nodes)}"]


def _verify_unsupported(expect: str) -> WorkerReport:
    if expect == "fresh":
        raise DriverUnavailableError(
            f"[CFG204] a fresh context can't be proved here: the platform is not supported ({guard.unsupported_reason})"
        )
    return WorkerReport(
        pid=os.getpid(),
        ppid=os.getppid(),
        start_method=start_method(sys.modules),
        expect=expect,
        driver=None,
        device=None,
        device_uuid=None,
        inherited=None,
        origin=None,
        released_handles=0,
        tripwire="unavailable",
        simulated=False,
        reasons=(guard.unsupported_reason,),
    )


def _report(
    native: ModuleType,
    expect: str,
    found: Evidence,
    inherited: bool | None,
    driver: str | None,
    reasons: list[str],
    *,
    device: int | None = None,
    uuid: bytes | None = None,
    released: int = 0,
) -> WorkerReport:
    origin, why = waking.origin_of(native, found)
    if origin is None and why:
        reasons.append(f"origin: {why}")
    if device is not None and uuid is None:
        reasons.append("device_uuid: this driver does not give it")
    return WorkerReport(
        pid=os.getpid(),
        ppid=os.getppid(),
        start_method=start_method(sys.modules),
        expect=expect,
        driver=driver,
        device=device,
        device_uuid=None if uuid is None else uuid_text(uuid),
        inherited=inherited,
        origin=origin,
        released_handles=released,
        tripwire=found.tripwire,
        simulated=found.simulated,
        reasons=tuple(reasons),
    )

"""GPU memory by process, as NVML accounts it: to the process that made it, alive or not."""

from __future__ import annotations

import threading
import warnings
from typing import Any, NamedTuple

# A driver that hangs would keep every other row from being shown.
_DEADLINE = 10.0
_LIBRARY = "libnvidia-ml.so.1"


class Charge(NamedTuple):
    pid: int
    device: int
    minor: int  # the N of /dev/nvidiaN
    bytes: int | None  # None: the driver does not tell (WSL, some virtual GPUs)


class Memory(NamedTuple):
    charges: tuple[Charge, ...]
    reason: str | None  # why there is nothing to see, if there is not


def gpu_memory() -> Memory:
    answer: list[Memory] = []
    thread = threading.Thread(target=lambda: answer.append(_ask()), name="cuda_fork_guard NVML", daemon=True)
    thread.start()
    thread.join(_DEADLINE)
    return answer[0] if answer else Memory((), f"NVML has not answered for {_DEADLINE:.0f} s")


def _ask() -> Memory:
    import ctypes

    try:
        # Most machines have no driver, and the package's import takes longer than everything else here.
        ctypes.CDLL(_LIBRARY)
    except OSError:
        return Memory((), f"there is no {_LIBRARY}: no driver is installed")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an older package of the same module name announces its end
            import pynvml  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        return Memory((), "nvidia-ml-py is not installed")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return Memory((), f"NVML: {error}")
    try:
        charges: list[Charge] = []
        for index in range(pynvml.nvmlDeviceGetCount()):
            charges += _of_device(pynvml, index)
        return Memory(tuple(charges), None)
    except pynvml.NVMLError as error:
        return Memory((), f"NVML: {error}")
    finally:
        pynvml.nvmlShutdown()


def _of_device(pynvml: Any, index: int) -> list[Charge]:
    device = pynvml.nvmlDeviceGetHandleByIndex(index)
    minor = int(pynvml.nvmlDeviceGetMinorNumber(device))
    most: dict[int, int | None] = {}
    for ask in (pynvml.nvmlDeviceGetComputeRunningProcesses, pynvml.nvmlDeviceGetGraphicsRunningProcesses):
        try:
            running = ask(device)
        except pynvml.NVMLError_NotSupported:
            continue
        # One entry for each MIG instance that it uses: a sum. Both lists may name the same memory: the larger.
        here: dict[int, int | None] = {}
        for process in running:
            here[int(process.pid)] = _add(here.get(int(process.pid)), process.usedGpuMemory)
        for pid, used in here.items():
            most[pid] = max(most.get(pid) or 0, used) if used is not None else most.get(pid)
    return [Charge(pid, index, minor, used) for pid, used in sorted(most.items())]


def _add(sum_so_far: int | None, used: int | None) -> int | None:
    return sum_so_far if used is None else (sum_so_far or 0) + used

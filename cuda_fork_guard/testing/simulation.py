"""The simulated driver in this process, and in those started from it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator
from typing import Literal

import cuda_fork_guard.testing as _package
from cuda_fork_guard.errors import DriverUnavailableError

State = Literal["loaded", "initialized", "active"]

STATES = ("loaded", "initialized", "active")
MAX_DEVICES = 16
LIBRARY = "libcuda.so.1"
SETTINGS = "CUDA_FORK_GUARD_SIM"
LOADER_PATH = "LD_LIBRARY_PATH"

# The process whose block is open; a forked child inherits the number, and sees that it isn't its own.
_open_in: int | None = None


def driver_folder() -> str:
    """The folder of the simulated ``libcuda.so.1``: put first on the loader's path, it is what a program finds."""
    for folder in _package.__path__:
        found = os.path.join(folder, "driver")
        if os.path.isfile(os.path.join(found, LIBRARY)):
            return found
    if not sys.platform.startswith("linux"):
        raise DriverUnavailableError(f"[CFG204] There is no simulated driver for {sys.platform}: it is for Linux only.")
    raise DriverUnavailableError("[CFG204] The simulated driver was not built into this installation.")


class SimulatedCuda:
    """The simulated driver while the block of `simulated_cuda` lasts; what it is told holds for programs started
    in the block as well."""

    def __init__(self, library: ctypes.CDLL, path: str, devices: int) -> None:
        self._library = library
        self._devices = devices
        self._slow: dict[str, int] = {}
        self._fail: dict[str, str] = {}
        self.path = path
        for function in (library.cfg_sim_configure, library.cfg_sim_slow, library.cfg_sim_fail):
            function.argtypes = [ctypes.c_char_p]
        self._check(library.cfg_sim_configure(b""), "")
        self.devices = devices

    @property
    def devices(self) -> int:
        """How many are installed. Takes effect at the next ``cuInit`` that brings the driver up."""
        return self._devices

    @devices.setter
    def devices(self, count: int) -> None:
        _check_devices(count)
        self._library.cfg_sim_devices(count)
        self._devices = count
        self._export()

    def slow(self, call: str, milliseconds: int) -> None:
        """Every `call` (an exported name: ``cuInit``, ``cuMemAlloc_v2``) takes this much longer; 0: no more."""
        if not 0 <= milliseconds <= 3_600_000:
            raise ValueError(f"milliseconds must be from 0 to 3600000, not {milliseconds}")
        self._check(self._library.cfg_sim_slow(call.encode(), milliseconds), call)
        self._slow[call] = milliseconds
        self._export()

    def fail(self, call: str, code: int, *, times: int | None = None) -> None:
        """Every `call`, or only the next `times` ones, fails with `code`; 0: no more."""
        if not 0 <= code <= 9999:
            raise ValueError(f"code must be from 0 to 9999, not {code}")
        if times is not None and not 1 <= times <= 1_000_000:
            raise ValueError(f"times must be from 1 to 1000000, or None for always, not {times}")
        self._check(self._library.cfg_sim_fail(call.encode(), code, times or 0), call)
        self._fail[call] = f"{code}:{times or 0}"
        self._export()

    def _check(self, result: int, call: str) -> None:
        if result != 0:
            raise ValueError(f"the driver has no entry {call!r}")

    def _export(self) -> None:
        settings = [f"devices={self._devices}"]
        settings += [f"slow={call}:{milliseconds}" for call, milliseconds in self._slow.items()]
        settings += [f"fail={call}:{fault}" for call, fault in self._fail.items()]
        os.environ[SETTINGS] = ";".join(settings)


def simulated_cuda(devices: int = 1, state: State = "initialized") -> contextlib.AbstractContextManager[SimulatedCuda]:
    """Load the simulated driver and bring it to `state`; leaving the block takes it down again, to ``loaded``.

    Programs started inside the block find it too, as their ``libcuda.so.1``, each for itself and not yet initialized.
    One block at a time, and never beside a real driver: `DriverUnavailableError`.
    """
    _check_devices(devices)
    if state not in STATES:
        raise ValueError(f"state must be one of {', '.join(STATES)}, not {state!r}")
    if devices == 0 and state != "loaded":
        raise ValueError(
            f"devices=0 means that there is no GPU: cuInit fails, so state can't be {state!r}, only 'loaded'"
        )
    return _simulation(devices, state)


def _check_devices(devices: int) -> None:
    if not 0 <= devices <= MAX_DEVICES:
        raise ValueError(f"devices must be from 0 to {MAX_DEVICES}, not {devices}")


@contextlib.contextmanager
def _simulation(devices: int, state: State) -> Iterator[SimulatedCuda]:
    global _open_in
    if _open_in is not None:
        where = "" if _open_in == os.getpid() else f" by process {_open_in}, from which this one was forked"
        raise DriverUnavailableError(f"[CFG204] simulated_cuda() is already in use{where}; it can't be nested.")
    folder = driver_folder()
    _refuse_real_driver()
    before = {name: os.environ.get(name) for name in (LOADER_PATH, SETTINGS)}
    library = ctypes.CDLL(os.path.join(folder, LIBRARY))
    if _is_up(library):
        raise DriverUnavailableError("[CFG204] The simulated driver is already up in this process, by other means.")
    _open_in = os.getpid()
    try:
        os.environ[LOADER_PATH] = folder + (f":{before[LOADER_PATH]}" if before[LOADER_PATH] else "")
        simulated = SimulatedCuda(library, os.path.join(folder, LIBRARY), devices)
        _bring_to(state, library)
        _tell_guard()
        yield simulated
    finally:
        # In a child that was forked inside the block this is refused: there the driver stays broken, like a real one.
        library.cfg_sim_shutdown()
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        library.cfg_sim_configure((before[SETTINGS] or "").encode())
        _open_in = None
        _tell_guard()


def _refuse_real_driver() -> None:
    try:
        loaded = ctypes.CDLL(LIBRARY, mode=os.RTLD_NOLOAD)
    except OSError:
        return
    simulated = hasattr(loaded, "cuda_fork_guard_simulated")
    # ctypes never gives back what it opened, and a real driver must stay as free to be unloaded as it was.
    ctypes.CDLL(None).dlclose(ctypes.c_void_p(loaded._handle))
    if not simulated:
        raise DriverUnavailableError(
            "[CFG204] A real libcuda.so.1 is loaded in this process; the simulated driver can't stand beside it."
        )


def _is_up(library: ctypes.CDLL) -> bool:
    return bool(library.cuDeviceGetCount(ctypes.byref(ctypes.c_int())) == 0)


def _bring_to(state: State, library: ctypes.CDLL) -> None:
    if state == "loaded":
        return
    code = library.cuInit(0)
    if code == 0 and state == "active":
        code = library.cuDevicePrimaryCtxRetain(ctypes.byref(ctypes.c_void_p()), 0)
    if code != 0:
        name = ctypes.c_char_p()
        library.cuGetErrorName(code, ctypes.byref(name))
        raise DriverUnavailableError(
            f"[CFG204] The simulated driver can't become {state!r} here: {(name.value or b'code').decode()} ({code})."
        )


def _tell_guard() -> None:
    """The guard learns of the driver's state when it looks; so it looks now, not at the next fork."""
    look = getattr(sys.modules.get("cuda_fork_guard._native"), "driver_up", None)
    if look is not None:
        look()

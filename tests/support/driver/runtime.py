"""Checks: the CUDA runtime on a driver. It looks for "libcuda.so.1" itself, so the driver is on the loader's path."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_int
from typing import Any

from support.driver.injection import Hook


def device_count(runtime: str, hook_path: str) -> dict[str, Any]:
    """cudaGetDeviceCount: its code, how often that called the hook, whether libcuda is still loaded."""
    hook = Hook(hook_path)
    library, count = ctypes.CDLL(runtime), c_int(-1)
    code = library.cudaGetDeviceCount(byref(count))
    with open("/proc/self/maps") as maps:
        loaded = "libcuda.so" in maps.read()
    return {"code": code, "hook": len(hook.calls()), "loaded": loaded}

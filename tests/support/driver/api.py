"""libcuda through ctypes, and forking, for checks. Nothing here knows which driver it is."""

from __future__ import annotations

import ctypes
import json
import os
import signal
from collections.abc import Callable
from ctypes import byref, c_char, c_int, c_size_t, c_uint, c_ulonglong, c_void_p
from typing import Any


def load(path: str) -> ctypes.CDLL:
    return ctypes.CDLL(path)


def query_calls(library: ctypes.CDLL) -> dict[str, Callable[[], int]]:
    """Every function that a program may call to look around, with arguments that are right if the driver is up."""
    text = (c_char * 64)()
    number, unsigned, long_number, size = c_int(), c_uint(), c_ulonglong(), c_size_t()
    pointer, device_pointer, host = c_void_p(), c_ulonglong(), (c_char * 16)()
    arguments: dict[str, tuple[Any, ...]] = {
        "cuDeviceGetCount": (byref(number),),
        "cuDeviceGet": (byref(number), 0),
        "cuDeviceGetName": (text, 64, 0),
        "cuDeviceGetUuid": (text, 0),
        "cuDeviceGetUuid_v2": (text, 0),
        "cuDeviceTotalMem_v2": (byref(size), 0),
        "cuDeviceGetAttribute": (byref(number), 75, 0),
        "cuDevicePrimaryCtxGetState": (0, byref(unsigned), byref(number)),
        "cuDevicePrimaryCtxRetain": (byref(pointer), 0),
        "cuDevicePrimaryCtxRelease": (0,),
        "cuDevicePrimaryCtxRelease_v2": (0,),
        "cuDevicePrimaryCtxReset": (0,),
        "cuDevicePrimaryCtxReset_v2": (0,),
        "cuCtxPushCurrent_v2": (c_void_p(),),
        "cuCtxPopCurrent_v2": (byref(pointer),),
        "cuCtxSetCurrent": (c_void_p(),),
        "cuCtxGetCurrent": (byref(pointer),),
        "cuCtxGetDevice": (byref(number),),
        "cuCtxGetId": (c_void_p(), byref(long_number)),
        "cuCtxSynchronize": (),
        "cuMemAlloc_v2": (byref(device_pointer), c_size_t(16)),
        "cuMemFree_v2": (c_ulonglong(),),
        "cuMemGetInfo_v2": (byref(size), byref(size)),
        "cuMemcpyHtoD_v2": (c_ulonglong(256), host, c_size_t(16)),
        "cuMemcpyDtoH_v2": (host, c_ulonglong(256), c_size_t(16)),
        "cuMemsetD8_v2": (c_ulonglong(256), c_int(0), c_size_t(16)),
    }
    return {
        name: lambda name=name, given=given: getattr(library, name)(*given)  # type: ignore[misc]
        for name, given in arguments.items()
        if hasattr(library, name)
    }


def query_codes(library: ctypes.CDLL) -> dict[str, int]:
    return {name: call() for name, call in query_calls(library).items()}


def device_count(library: ctypes.CDLL) -> tuple[int, int]:
    """(code, count)"""
    count = c_int(-1)
    return library.cuDeviceGetCount(byref(count)), count.value


def version(library: ctypes.CDLL) -> int:
    number = c_int()
    assert library.cuDriverGetVersion(byref(number)) == 0
    return number.value


def in_child(function: Callable[[], Any], limit: int = 20) -> Any:
    """What the function returns in a forked child. A child that hangs is ended by its alarm, and is an error here."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(limit)
        try:
            os.write(write, json.dumps(function()).encode())
        finally:
            os._exit(0)
    os.close(write)
    with open(read, "rb") as stream:
        said = stream.read()
    status = os.waitpid(child, 0)[1]
    assert status == 0, f"the child ended with status {status} and said {said!r}"
    return json.loads(said)


def descriptors() -> list[str]:
    """What this process has open, numbers left out."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{name}"))
        except FileNotFoundError:  # the one that lists
            continue
    return sorted(found)


def thread_names() -> list[str]:
    names = []
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/comm") as stream:
            names.append(stream.read().strip())
    return sorted(names)

"""The driver's result codes by name (``CUresult`` in NVIDIA's cuda.h), for messages."""

from __future__ import annotations

NOT_INITIALIZED = 3

_NAMES = {
    1: "INVALID_VALUE",
    2: "OUT_OF_MEMORY",
    3: "NOT_INITIALIZED",
    4: "DEINITIALIZED",
    34: "STUB_LIBRARY",
    46: "DEVICE_UNAVAILABLE",
    100: "NO_DEVICE",
    101: "INVALID_DEVICE",
    201: "INVALID_CONTEXT",
    300: "INVALID_SOURCE",
    304: "OPERATING_SYSTEM",
    400: "INVALID_HANDLE",
    700: "ILLEGAL_ADDRESS",
    719: "LAUNCH_FAILED",
    801: "NOT_SUPPORTED",
    802: "SYSTEM_NOT_READY",
    803: "SYSTEM_DRIVER_MISMATCH",
    804: "COMPAT_NOT_SUPPORTED_ON_DEVICE",
    999: "UNKNOWN",
}


def describe(code: int) -> str:
    """``3`` -> ``"3 (CUDA_ERROR_NOT_INITIALIZED)"``; a code without a known name stays a number."""
    if code == 0:
        return "0 (CUDA_SUCCESS)"
    name = _NAMES.get(code)
    return f"{code} (CUDA_ERROR_{name})" if name else str(code)

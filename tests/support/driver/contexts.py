"""Checks: an initialized driver, its devices, contexts and memory."""

from __future__ import annotations

import ctypes
import threading
from ctypes import byref, c_char, c_int, c_size_t, c_uint, c_ulonglong, c_void_p
from typing import Any

from support.driver.api import device_count, load

NO_DEVICES = (-1, 99)


def initialized(path: str) -> ctypes.CDLL:
    library = load(path)
    assert library.cuInit(0) == 0
    return library


def retain(library: ctypes.CDLL, device: int = 0) -> c_void_p:
    context = c_void_p()
    assert library.cuDevicePrimaryCtxRetain(byref(context), device) == 0
    return context


def is_active(library: ctypes.CDLL, device: int = 0) -> bool:
    flags, active = c_uint(), c_int()
    assert library.cuDevicePrimaryCtxGetState(device, byref(flags), byref(active)) == 0
    return bool(active.value)


def devices(path: str) -> dict[str, Any]:
    library = initialized(path)
    code, count = device_count(library)
    found: dict[str, Any] = {"code": code, "count": count, "again": library.cuInit(0)}
    found["devices"] = []
    for ordinal in range(count):
        device, total, major = c_int(-1), c_size_t(), c_int()
        name, uuid = (c_char * 64)(), (c_char * 16)()
        codes = [
            library.cuDeviceGet(byref(device), ordinal),
            library.cuDeviceGetName(name, 64, ordinal),
            library.cuDeviceGetUuid_v2(uuid, ordinal),
            library.cuDeviceTotalMem_v2(byref(total), ordinal),
            library.cuDeviceGetAttribute(byref(major), 75, ordinal),
        ]
        found["devices"].append((codes, device.value, name.value.decode(), uuid.raw.hex(), total.value, major.value))
    return found


def wrong_devices(path: str) -> dict[str, list[int]]:
    """Codes of each call for a device below and one above those there are."""
    library = initialized(path)
    number, unsigned, size, pointer, text = c_int(), c_uint(), c_size_t(), c_void_p(), (c_char * 64)()
    calls: dict[str, Any] = {
        "cuDeviceGet": lambda device: library.cuDeviceGet(byref(number), device),
        "cuDeviceGetName": lambda device: library.cuDeviceGetName(text, 64, device),
        "cuDeviceGetUuid": lambda device: library.cuDeviceGetUuid(text, device),
        "cuDeviceTotalMem_v2": lambda device: library.cuDeviceTotalMem_v2(byref(size), device),
        "cuDeviceGetAttribute": lambda device: library.cuDeviceGetAttribute(byref(number), 75, device),
        "GetState": lambda device: library.cuDevicePrimaryCtxGetState(device, byref(unsigned), byref(number)),
        "Retain": lambda device: library.cuDevicePrimaryCtxRetain(byref(pointer), device),
        "Release": library.cuDevicePrimaryCtxRelease_v2,
        "Reset": library.cuDevicePrimaryCtxReset_v2,
    }
    return {name: [call(device) for device in NO_DEVICES] for name, call in calls.items()}


def life_of_a_context(path: str) -> list[Any]:
    """A primary context from its first retain to its last release."""
    library = initialized(path)
    seen: list[Any] = [is_active(library)]
    first, second = retain(library), retain(library)
    seen += [first.value == second.value, is_active(library)]
    seen += [library.cuDevicePrimaryCtxRelease_v2(0), is_active(library)]
    seen += [library.cuDevicePrimaryCtxRelease_v2(0), is_active(library)]
    seen += [library.cuDevicePrimaryCtxRelease_v2(0)]
    return seen


def current_context(path: str) -> dict[str, Any]:
    """Retaining makes no context current; the stack; another thread has a stack of its own."""
    library = initialized(path)
    context = retain(library)

    def current() -> bool | None:
        now = c_void_p()
        assert library.cuCtxGetCurrent(byref(now)) == 0
        return None if now.value is None else now.value == context.value

    device, popped, number = c_int(-1), c_void_p(), c_ulonglong()
    seen: dict[str, Any] = {"after retain": current(), "no context": library.cuCtxGetDevice(byref(device))}
    seen["pop of nothing"] = library.cuCtxPopCurrent_v2(byref(popped))
    seen["push"] = library.cuCtxPushCurrent_v2(context), current(), library.cuCtxGetDevice(byref(device)), device.value
    seen["id"] = library.cuCtxGetId(None, byref(number)), number.value > 0
    others: list[bool | None] = []
    thread = threading.Thread(target=lambda: others.append(current()))
    thread.start()
    thread.join()
    seen["other thread"] = others[0]
    seen["synchronize"] = library.cuCtxSynchronize()
    seen["pop"] = library.cuCtxPopCurrent_v2(byref(popped)), popped.value == context.value, current()
    seen["set"] = library.cuCtxSetCurrent(context), current()
    seen["unset"] = library.cuCtxSetCurrent(None), current()
    return seen


def ids_of_contexts(path: str) -> bool:
    """A context that is made anew has another id."""
    library = initialized(path)
    ids = []
    for _ in range(2):
        context, number = retain(library), c_ulonglong()
        assert library.cuCtxGetId(context, byref(number)) == 0
        ids.append(number.value)
        assert library.cuDevicePrimaryCtxRelease_v2(0) == 0
    return ids[0] != ids[1]


def memory(path: str) -> dict[str, Any]:
    """Allocate, write, read back, set, free, and the ways in which each goes wrong."""
    library = initialized(path)
    pointer, size = c_ulonglong(), 1 << 16
    data = bytes(range(256)) * (size // 256)
    back = (c_char * size)()
    seen: dict[str, Any] = {"without context": library.cuMemAlloc_v2(byref(pointer), c_size_t(size))}
    assert library.cuCtxSetCurrent(retain(library)) == 0
    free, total, later = c_size_t(), c_size_t(), c_size_t()
    seen["info"] = library.cuMemGetInfo_v2(byref(free), byref(total)), 0 < free.value <= total.value
    seen["nothing"] = library.cuMemAlloc_v2(byref(pointer), c_size_t(0))
    seen["too much"] = library.cuMemAlloc_v2(byref(pointer), c_size_t(1 << 45))
    seen["allocate"] = library.cuMemAlloc_v2(byref(pointer), c_size_t(size)), pointer.value % 256
    seen["to device"] = library.cuMemcpyHtoD_v2(pointer, data, c_size_t(size))
    seen["to host"] = library.cuMemcpyDtoH_v2(back, pointer, c_size_t(size)), back.raw == data
    middle = c_ulonglong(pointer.value + 100)
    seen["set"] = library.cuMemsetD8_v2(middle, c_int(7), c_size_t(50))
    assert library.cuMemcpyDtoH_v2(back, pointer, c_size_t(size)) == 0
    seen["is set"] = back.raw == data[:100] + b"\x07" * 50 + data[150:]
    seen["null to device"] = library.cuMemcpyHtoD_v2(pointer, None, c_size_t(16))
    seen["from nowhere"] = library.cuMemcpyDtoH_v2(back, c_ulonglong(0), c_size_t(16))
    seen["free"] = library.cuMemFree_v2(pointer)
    seen["free again"] = library.cuMemFree_v2(pointer)
    seen["info later"] = library.cuMemGetInfo_v2(byref(later), byref(total)), later.value == free.value
    return seen


def beyond_an_allocation(path: str) -> dict[str, list[int]]:
    """Reads, writes and sets that begin before, or end after, the memory that was allocated."""
    library = initialized(path)
    assert library.cuCtxSetCurrent(retain(library)) == 0
    pointer, size, host = c_ulonglong(), 256, (c_char * 512)()
    assert library.cuMemAlloc_v2(byref(pointer), c_size_t(size)) == 0
    ranges = [(-1, size), (0, size + 1), (size - 1, 2), (size + 1, 0), (0, size), (size, 0)]
    at = [(c_ulonglong(pointer.value + offset), c_size_t(length)) for offset, length in ranges]
    return {
        "write": [library.cuMemcpyHtoD_v2(start, host, length) for start, length in at],
        "read": [library.cuMemcpyDtoH_v2(host, start, length) for start, length in at],
        "set": [library.cuMemsetD8_v2(start, c_int(0), length) for start, length in at],
    }


def visible_devices(path: str) -> tuple[int, int]:
    library = load(path)
    return library.cuInit(0), device_count(library)[1]


def threads_at_once(path: str, threads: int, rounds: int) -> dict[str, Any]:
    """Threads that retain, allocate, copy, check and release the same device all at once."""
    library = initialized(path)
    start = threading.Barrier(threads)
    wrong: list[str] = []

    def work(number: int) -> None:
        start.wait()
        for turn in range(rounds):
            context = retain(library)
            pointer, written = c_ulonglong(), bytes([(number * rounds + turn) % 256]) * 64
            read = (c_char * 64)()
            codes = [
                library.cuCtxPushCurrent_v2(context),
                library.cuMemAlloc_v2(byref(pointer), c_size_t(64)),
                library.cuMemcpyHtoD_v2(pointer, written, c_size_t(64)),
                library.cuMemcpyDtoH_v2(read, pointer, c_size_t(64)),
                library.cuMemFree_v2(pointer),
                library.cuCtxPopCurrent_v2(None),
                library.cuDevicePrimaryCtxRelease_v2(0),
            ]
            if any(codes) or read.raw != written:
                wrong.append(f"thread {number}, turn {turn}: {codes}")

    workers = [threading.Thread(target=work, args=[number]) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return {"wrong": wrong[:5], "active": is_active(library)}

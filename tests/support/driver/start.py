"""Checks: what a library answers before cuInit, and around a cuInit that fails."""

from __future__ import annotations

import ctypes
import os
from ctypes import byref, c_char_p, c_void_p
from typing import Any

from support.driver.api import descriptors, load, query_calls, query_codes, thread_names, version


def loadable_and_up(path: str) -> dict[str, Any]:
    """Is there a driver with a device behind this name? And which file is it?"""
    try:
        library = load(path)
    except OSError as error:
        return {"error": str(error)}
    code = library.cuInit(0)
    with open("/proc/self/maps") as maps:
        files = [line.split()[-1] for line in maps if "libcuda.so" in line]
    return {"error": "", "cuInit": code, "version": version(library), "path": files[0] if files else path}


def codes_before_init(path: str) -> dict[str, int]:
    return query_codes(load(path))


def driver_version(path: str) -> int:
    return version(load(path))


def found_by_soname(path: str) -> bool:
    """The loaded library is found by its soname alone, whatever path it came from."""
    library = load(path)
    found = ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD)
    return found._handle == library._handle


def error_texts(path: str) -> dict[int, tuple[str, str]]:
    """Name and text of each code that the driver knows; an unknown one is an invalid value, and gives null."""
    library = load(path)
    known = {}
    for code in range(-1, 1100):
        name, text = c_char_p(b"untouched"), c_char_p(b"untouched")
        results = library.cuGetErrorName(code, byref(name)), library.cuGetErrorString(code, byref(text))
        if results == (0, 0) and name.value and text.value:
            known[code] = (name.value.decode(), text.value.decode())
        else:
            assert (results, name.value, text.value) == ((1, 1), None, None), code
    return known


def export_table(path: str) -> tuple[int, Any]:
    """Nobody's table: (code, pointer)."""
    table = c_void_p(1)
    return load(path).cuGetExportTable(byref(table), bytes(16)), table.value


def traces_of_queries(path: str) -> dict[str, Any]:
    """Descriptors and threads that came into being by asking before cuInit."""
    library = load(path)
    calls = query_calls(library)
    before = descriptors(), thread_names()
    for call in calls.values():
        call()
    version(library)
    return {"asked": len(calls), "before": before, "after": (descriptors(), thread_names())}


def failed_init(path: str) -> dict[str, Any]:
    """cuInit without a device, twice, and all questions after it; what it left in the process."""
    library = load(path)
    before = descriptors()
    wrong_flags = library.cuInit(1)
    codes = [library.cuInit(0), library.cuInit(0)]
    kept = descriptors()
    for one in before:
        kept.remove(one)
    return {
        "wrong flags": wrong_flags,
        "cuInit": codes,
        "after": query_codes(library),
        "version": version(library),
        "descriptors": kept,
        "threads": [name for name in thread_names() if name.startswith("cuda")],
    }


def fork_handlers(path: str, watcher: str) -> tuple[int, int]:
    """Fork handlers that the library registered: (at load, by a cuInit that fails). Needs the watcher preloaded."""
    library = load(path)
    watched = ctypes.CDLL(watcher)
    at_load = watched.atfork_registrations()
    assert library.cuInit(0) == 100
    return at_load, watched.atfork_registrations() - at_load


_NEW_MOUNTS = 0x20000  # CLONE_NEWNS
_PRIVATE = 0x4000 | 0x40000  # MS_REC | MS_PRIVATE


def _empty(libc: ctypes.CDLL, folder: bytes) -> None:
    assert libc.mount(b"tmpfs", folder, b"tmpfs", 0, b"mode=755") == 0, os.strerror(ctypes.get_errno())


def init_without_nodes(path: str, counter: str, user: int) -> dict[str, Any]:
    """cuInit where /dev is empty, in this process only: how often it forked (with nvidia-modprobe there), and what it
    put into /dev. As root, then as `user`."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_MOUNTS) != 0 or libc.mount(b"none", b"/", None, _PRIVATE, None) != 0:
        return {"refused": os.strerror(ctypes.get_errno())}
    _empty(libc, b"/dev")
    library, count = load(path), ctypes.CDLL(counter)
    if user != 0:
        # The driver runs its helper only if that is root's and set-uid; "true" does nothing.
        with open(os.path.realpath("/bin/true"), "rb") as file:
            nothing = file.read()
        _empty(libc, b"/usr/bin")
        with open("/usr/bin/nvidia-modprobe", "wb") as file:
            file.write(nothing)
        os.chmod("/usr/bin/nvidia-modprobe", 0o4755)
        os.setgid(user)
        os.setuid(user)
    os.environ["CUDA_INJECTION64_PATH"] = counter
    return {"cuInit": library.cuInit(0), "forks": count.forks_since_hook(), "nodes": os.listdir("/dev")}


def null_version(path: str) -> int:
    return int(load(path).cuDriverGetVersion(None))

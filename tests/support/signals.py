"""What import and capture must leave as it was: dispositions, alternate stack, descriptors. Used inside child programs."""

from __future__ import annotations

import ctypes
import os
import platform

_RT_SIGACTION, MEMFD_CREATE = {"x86_64": (13, 319), "aarch64": (134, 279)}[platform.machine()]
_libc = ctypes.CDLL(None, use_errno=True)


def dispositions() -> dict[int, bytes]:
    """The kernel's own record of every signal, read by the system call: the C library would hide its flag."""
    found = {}
    for number in range(1, 65):
        record = ctypes.create_string_buffer(64)
        if _libc.syscall(_RT_SIGACTION, number, None, record, ctypes.c_size_t(8)) == 0:
            found[number] = record.raw
    return found


def alternate_stack() -> bytes:
    record = ctypes.create_string_buffer(24)
    assert _libc.sigaltstack(None, record) == 0
    return record.raw


def descriptors() -> dict[int, str]:
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:  # the one that lists
            continue
    return found


def pending() -> list[str]:
    with open("/proc/self/status") as stream:
        return [line for line in stream if line.startswith(("SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt"))]


def refuse(call: int, error: int, second_argument: int | None = None) -> None:
    """From now on a system call fails with this error in this process, as in a sandbox (seccomp)."""
    load, equal, give = 0x20, 0x15, 0x06  # BPF: load a word, jump if equal, return
    rows = [(load, 0, 0, 0), (equal, 0, 1, call), (give, 0, 0, 0x00050000 | error), (give, 0, 0, 0x7FFF0000)]
    if second_argument is not None:
        check = [(load, 0, 0, 24), (equal, 0, 1, second_argument)]
        rows = [rows[0], (equal, 0, 3, call), *check, *rows[2:]]

    class Row(ctypes.Structure):
        _fields_ = [("code", ctypes.c_ushort), ("yes", ctypes.c_ubyte), ("no", ctypes.c_ubyte), ("k", ctypes.c_uint)]

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("rows", ctypes.POINTER(Row))]

    program = Program(len(rows), (Row * len(rows))(*(Row(*row) for row in rows)))
    no_new_privileges, seccomp, filter_mode = 38, 22, 2
    assert _libc.prctl(no_new_privileges, 1, 0, 0, 0) == 0
    assert _libc.prctl(seccomp, filter_mode, ctypes.byref(program), 0, 0) == 0

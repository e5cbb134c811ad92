"""Whether two processes hold one and the same open file: kcmp(2), the only call that knows."""

from __future__ import annotations

_SYS_KCMP = {"x86_64": 312, "aarch64": 272}
_KCMP_FILE = 0


def same_open_file(pid: int, fd: int, other_pid: int, other_fd: int) -> bool | None:
    """None: not permitted, a kernel without the call, or one of them is gone."""
    import ctypes
    import platform

    number = _SYS_KCMP.get(platform.machine())
    if number is None:
        return None
    syscall = ctypes.CDLL(None).syscall
    syscall.restype = ctypes.c_long
    arguments = (number, pid, other_pid, _KCMP_FILE, fd, other_fd)
    order: int = syscall(*(ctypes.c_long(value) for value in arguments))
    return None if order < 0 else order == 0

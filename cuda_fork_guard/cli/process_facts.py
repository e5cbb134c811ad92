"""One process, looked at once: the device handles it holds and, if it holds any, who it is."""

from __future__ import annotations

import os
from typing import NamedTuple

from cuda_fork_guard import procfs
from cuda_fork_guard.cli.mappings import mapped_devices
from cuda_fork_guard.device_nodes import COMMON_PREFIXES, device_node


class Handle(NamedTuple):
    path: str
    fd: int | None  # None: no descriptor, but a mapping, which keeps the device open just the same


class Process(NamedTuple):
    pid: int
    tid: int  # the thread whose table of descriptors was read: the pid, unless the main thread has ended
    stat: procfs.Stat
    uid: int | None
    pids: tuple[int, ...]
    command: tuple[str, ...]
    cgroup: str | None
    pid_namespace: str | None
    handles: tuple[Handle, ...]
    thread_names: tuple[str, ...]
    blocked_threads: int  # in uninterruptible sleep


class Unreadable(NamedTuple):
    """A process that would not be looked at, so that it may hold anything."""

    pid: int
    uid: int | None
    reason: str


NOT_PERMITTED = "not permitted"
STUCK = "reading its /proc files blocks: one of its threads hangs in the kernel"


class Bystander(NamedTuple):
    """Has no descriptor of a device."""

    pid: int
    stat_line: bytes
    forked_without_exec: bool


def look_at(pid: str, proc: str) -> Process | Bystander | Unreadable | None:
    """None: a kernel thread, or it ended while it was looked at."""
    folder = f"{proc}/{pid}"
    fds = f"{folder}/fd/"
    readlink = os.readlink
    try:
        names = os.listdir(fds)
        for name in names:
            try:
                if readlink(fds + name).startswith(COMMON_PREFIXES):
                    break
            except FileNotFoundError:
                continue  # closed meanwhile, or the whole process is gone
        else:
            line = _stat_line(folder)
            flags = procfs.flags_of(line)
            if flags & procfs.PF_KTHREAD:
                return None
            # An empty table may be that of a main thread which has ended: the others are asked in _describe.
            if names or procfs.parse_stat(line).threads <= 1:
                return Bystander(int(pid), line, bool(flags & procfs.PF_FORKNOEXEC))
    except PermissionError:
        return _not_permitted(pid, folder)
    except (OSError, ValueError):
        return None
    return _describe(int(pid), folder)


def look_at_mappings(pid: str, proc: str) -> Process | Unreadable | None:
    folder = f"{proc}/{pid}"
    try:
        found = mapped_devices(f"{folder}/maps")
    except PermissionError:
        return _not_permitted(pid, folder)
    except OSError:
        return None
    return _describe(int(pid), folder) if found else None


def _describe(pid: int, folder: str) -> Process | None:
    # Everything through one descriptor of the folder: it goes on standing for this process and answers ESRCH once that
    # is gone, so that a second process with the same number is never mixed in.
    try:
        at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        tid, handles = _handles(at, pid)
        if not handles:
            return None
        stat = procfs.parse_stat(_read(at, "stat", procfs.STAT_LIMIT))
        if tid != pid:
            # Memory too is to be had through a living thread only. The flags aren't: no thread has exec'ed.
            stat = stat._replace(image=procfs.parse_stat(_read(at, f"task/{tid}/stat", procfs.STAT_LIMIT)).image)
        status = procfs.parse_status(_read(at, "status", procfs.STATUS_LIMIT))
        names, blocked = _threads(at)
        command = procfs.parse_cmdline(_read(at, f"task/{tid}/cmdline", procfs.CMDLINE_LIMIT))
        return Process(
            pid=pid,
            tid=tid,
            stat=stat,
            uid=status.uid,
            pids=status.pids or (pid,),
            command=command or (f"[{stat.comm}]",),
            cgroup=procfs.parse_cgroup(_read_if_there(at, "cgroup", procfs.CGROUP_LIMIT)),
            pid_namespace=_link(at, f"task/{tid}/ns/pid"),
            handles=handles,
            thread_names=names,
            blocked_threads=blocked,
        )
    except (OSError, ValueError):
        return None
    finally:
        os.close(at)


def _handles(at: int, pid: int) -> tuple[int, tuple[Handle, ...]]:
    """The thread that answered, and what it holds."""
    for tid in (pid, *(int(name) for name in _list(at, "task") if name != str(pid))):
        found = [Handle(path, fd) for path, fd in _open_devices(at, f"task/{tid}/fd")]
        if not found:
            try:
                found = [Handle(path, None) for path in mapped_devices(f"task/{tid}/maps", at)]
            except OSError:
                continue  # a thread that has ended; the others may live
        if found:
            return tid, tuple(sorted(found, key=lambda handle: (handle.path, handle.fd or 0)))
    return pid, ()


def _open_devices(at: int, table: str) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    for name in _list(at, table):
        target = _link(at, f"{table}/{name}")
        path = device_node(target) if target is not None else None
        if path is not None and _is_device(at, f"{table}/{name}"):
            found.append((path, int(name)))
    return found


def _is_device(at: int, name: str) -> bool:
    try:
        mode = os.stat(name, dir_fd=at).st_mode
    except OSError:
        return True  # its name says device, and nothing says otherwise
    return mode & 0o170000 == 0o020000


def _threads(at: int) -> tuple[tuple[str, ...], int]:
    names: list[str] = []
    blocked = 0
    for tid in _list(at, "task"):
        try:
            stat = procfs.parse_stat(_read(at, f"task/{tid}/stat", procfs.STAT_LIMIT))
        except (OSError, ValueError):
            continue
        names.append(stat.comm)
        blocked += stat.state == "D"
    return tuple(names), blocked


def _stat_line(folder: str) -> bytes:
    fd = os.open(f"{folder}/stat", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, procfs.STAT_LIMIT)
    finally:
        os.close(fd)


def _not_permitted(pid: str, folder: str) -> Unreadable | None:
    """Kernel threads are nobody's to read, and hold nothing."""
    try:
        stat = procfs.parse_stat(_stat_line(folder))
        if stat.is_kernel_thread or stat.state in "ZX":
            return None
        with open(f"{folder}/status", "rb") as file:
            uid = procfs.parse_status(file.read(procfs.STATUS_LIMIT)).uid
    except (OSError, ValueError):
        return None
    return Unreadable(int(pid), uid, NOT_PERMITTED)


def _read(at: int, name: str, limit: int) -> bytes:
    fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=at)
    try:
        return os.read(fd, limit)
    finally:
        os.close(fd)


def _read_if_there(at: int, name: str, limit: int) -> bytes:
    try:
        return _read(at, name, limit)
    except OSError:
        return b""


def _link(at: int, name: str) -> str | None:
    try:
        return os.readlink(name, dir_fd=at)
    except OSError:
        return None


def _list(at: int, name: str) -> list[str]:
    try:
        fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=at)
    except OSError:
        return []
    try:
        return os.listdir(fd)
    finally:
        os.close(fd)

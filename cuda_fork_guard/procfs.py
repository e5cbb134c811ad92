"""Parsers for what /proc says of a process: pure, bounded, and safe against names made to confuse them."""

from __future__ import annotations

from typing import NamedTuple

PF_FORKNOEXEC = 0x40
PF_KTHREAD = 0x0020_0000

# Enough for every line we look for; a process can make the files themselves as long as it likes.
STAT_LIMIT = 4096
STATUS_LIMIT = 16384
CMDLINE_LIMIT = 4096
CGROUP_LIMIT = 16384


class Stat(NamedTuple):
    comm: str
    state: str
    ppid: int
    flags: int
    threads: int
    start_ticks: int
    # Where exec put the program: kept by fork, drawn anew at exec. Zeros where the kernel keeps them from us.
    image: tuple[int, int, int, int]

    @property
    def forked_without_exec(self) -> bool:
        return bool(self.flags & PF_FORKNOEXEC)

    @property
    def is_kernel_thread(self) -> bool:
        return bool(self.flags & PF_KTHREAD)


def parse_stat(data: bytes) -> Stat:
    """One line of /proc/PID/stat. ValueError if it is not one.

    The command name stands in parentheses and may hold any byte, ")" and "(" included; the fields after it are plain
    numbers, so the last ")" ends it.
    """
    begin, end = data.find(b"("), data.rfind(b")")
    fields = data[end + 1 :].split()
    if not 0 < begin < end or len(fields) < 22:
        raise ValueError("not a line of /proc/PID/stat")

    def number(field: int) -> int:
        # Numbered as in proc(5); the state is number 3. Kernels before 3.5 end earlier.
        return int(fields[field - 3]) if field - 3 < len(fields) else 0

    start_code = number(26)
    return Stat(
        comm=text(data[begin + 1 : end]),
        state=text(fields[0]),
        ppid=number(4),
        flags=number(9),
        threads=number(20),
        start_ticks=number(22),
        # 1 stands for "not shown to you"; the other three are 0 then.
        image=(0 if start_code == 1 else start_code, number(28), number(48), number(50)),
    )


def flags_of(data: bytes) -> int:
    """The flags alone, for a first look at thousands of lines. ValueError as in `parse_stat`."""
    fields = data[data.rfind(b")") + 1 :].split(None, 7)
    if len(fields) < 8:
        raise ValueError("not a line of /proc/PID/stat")
    return int(fields[6])


class ProcessStatus(NamedTuple):
    uid: int | None  # effective
    pids: tuple[int, ...]  # in each pid namespace from the reader's down to its own


def parse_status(data: bytes) -> ProcessStatus:
    """/proc/PID/status. Lines that are missing or broken leave their value unknown."""
    uid: int | None = None
    pids: tuple[int, ...] = ()
    for line in data.split(b"\n"):
        key, _, value = line.partition(b":")
        if key == b"Uid":
            uids = _integers(value)
            uid = uids[1] if len(uids) > 1 else None
        elif key == b"NSpid":
            pids = _integers(value)
    return ProcessStatus(uid, pids)


def _integers(value: bytes) -> tuple[int, ...]:
    try:
        return tuple(int(word) for word in value.split())
    except ValueError:
        return ()


def parse_cmdline(data: bytes) -> tuple[str, ...]:
    """/proc/PID/cmdline, which programs overwrite with a title of their own as they like."""
    if len(data) >= CMDLINE_LIMIT:
        data = data[: CMDLINE_LIMIT - 3] + b"..."
    return tuple(text(word) for word in data.rstrip(b"\0").split(b"\0")) if data.strip(b"\0") else ()


def parse_cgroup(data: bytes) -> str | None:
    """The process's path in the unified hierarchy; without one, its path for the first controller named."""
    first: str | None = None
    for line in data.split(b"\n"):
        hierarchy, _, rest = line.partition(b":")
        controllers, separator, path = rest.partition(b":")
        if not separator:
            continue
        if hierarchy == b"0" and not controllers:
            return text(path)
        if first is None:
            first = text(path)
    return first


def container_of(cgroup: str | None) -> str | None:
    """The container that a cgroup path names: the 64 hexadecimal digits every common runtime puts there, cut to 12."""
    for part in reversed((cgroup or "").split("/")):
        for word in part.removesuffix(".scope").replace(":", "-").split("-"):
            if len(word) == 64 and all(c in "0123456789abcdef" for c in word):
                return word[:12]
    return None


def text(data: bytes) -> str:
    """Text that is safe to show: what is no UTF-8, and what would steer a terminal, as escapes."""
    decoded = data.decode("utf-8", "backslashreplace")
    if decoded.isprintable():
        return decoded
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in decoded)

"""What a look at /proc can't have seen, in words: nothing is called clean that was not looked at."""

from __future__ import annotations

import os

from cuda_fork_guard.cli.process_facts import NOT_PERMITTED, Unreadable

# The first pid namespace's inode number is fixed by the kernel (PROC_PID_INIT_INO).
_FIRST_PID_NAMESPACE = "pid:[4026531836]"


def user_name(uid: int | None) -> str:
    import pwd  # Unix has it alone

    if uid is None:
        return "?"
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def own_pid_namespace(proc: str) -> str | None:
    try:
        return os.readlink(f"{proc}/self/ns/pid")
    except OSError:
        return None


def sees_all_pids(proc: str) -> bool:
    """Whether the pids seen here are the machine's own, so that NVML's mean the same processes."""
    return own_pid_namespace(proc) == _FIRST_PID_NAMESPACE


def blind_spots(proc: str, unreadable: tuple[Unreadable, ...]) -> list[str]:
    spots: list[str] = []
    if not sees_all_pids(proc):
        spots.append("processes outside this PID namespace (this container) can't be seen: look from the host")
    if not os.path.exists(f"{proc}/1"):
        spots.append(f"{proc} hides other users' processes (hidepid): run as root")
    by_reason: dict[str, list[Unreadable]] = {}
    for process in unreadable:
        by_reason.setdefault(process.reason, []).append(process)
    for reason, processes in by_reason.items():
        if reason == NOT_PERMITTED:
            way_out = "even for root: a sandbox or security module" if os.geteuid() == 0 else "run as root"
            spots.append(f"{_count(processes)} not permitted to be looked at ({_users(processes)}): {way_out}")
        else:
            pids = ", ".join(str(process.pid) for process in processes[:20])
            spots.append(f"{_count(processes)} could not be looked at (pid {pids}): {reason}")
    return spots


def _count(processes: list[Unreadable]) -> str:
    return "1 process" if len(processes) == 1 else f"{len(processes)} processes"


def _users(processes: list[Unreadable]) -> str:
    counts: dict[str, int] = {}
    for process in processes:
        name = user_name(process.uid)
        counts[name] = counts.get(name, 0) + 1
    return ", ".join(f"{name}: {count}" for name, count in sorted(counts.items(), key=lambda item: -item[1])[:10])

"""The holders as a table for people and as plain data for programs."""

from __future__ import annotations

from cuda_fork_guard.cli.blind_spots import user_name
from cuda_fork_guard.cli.holder_rows import Gone, Row
from cuda_fork_guard.cli.table import output_width, table
from cuda_fork_guard.device_nodes import CUDA_NODE

_HEADINGS = ("PID", "USER", "AGE", "MEMORY", "HANDLES", "HOW", "COMMAND")
_RIGHT = frozenset({0, 2, 3})


def kill_line(rows: list[Row]) -> str | None:
    """For orphans only: whoever forked them is gone, so nobody else will end them."""
    pids = [str(row.process.pid) for row in rows if row.verdict.orphaned]
    return "kill " + " ".join(pids) if pids else None


def as_text(rows: list[Row], gone: list[Gone], *, sees_all_pids: bool) -> list[str]:
    if not rows and not gone:
        return []
    cells = [_cells(row) for row in rows] + [_gone_cells(entry, sees_all_pids) for entry in gone]
    lines = table(_HEADINGS, cells, width=output_width(), right=_RIGHT)
    by_cgroup: dict[str, list[int]] = {}
    for row in rows:
        if row.process.cgroup not in (None, "/"):
            by_cgroup.setdefault(str(row.process.cgroup), []).append(row.process.pid)
    if by_cgroup:
        lines += ["", "cgroups:"]
        lines += [f"  {cgroup}  pid {', '.join(map(str, pids))}" for cgroup, pids in by_cgroup.items()]
    kill = kill_line(rows)
    if kill is not None:
        lines += ["", f"to end the orphans, if nobody needs them: {kill}"]
    return lines


def _cells(row: Row) -> tuple[str, ...]:
    process = row.process
    return (
        str(process.pid),
        user_name(process.uid),
        duration(row.age),
        size(row.memory),
        handle_summary(row),
        "; ".join(_how(row)),
        " ".join(process.command),
    )


def _how(row: Row) -> list[str]:
    verdict = row.verdict
    if verdict.owner == "inherited" and not verdict.orphaned and row.parent is not None:
        words = [f"inherited from {row.parent.pid}"]
    else:
        words = [verdict.owner or f"unknown: {verdict.evidence}"]
    if verdict.reaper is not None:
        words.append(f"orphaned, adopted by {verdict.reaper.pid} ({verdict.reaper.stat.comm})")
    if row.process.blocked_threads:
        words.append("in uninterruptible sleep (a kill waits for its end)")
    if row.container is not None:
        words.append(f"container {row.container}")
    if row.other_pid_namespace:
        words.append(f"pid {row.process.pids[-1]} in its own namespace")
    return words


def _gone_cells(entry: Gone, sees_all_pids: bool) -> tuple[str, ...]:
    what = "gone" if sees_all_pids else "not a process of this PID namespace"
    keepers = ", ".join(map(str, entry.kept_by))
    kept = f"; kept by {keepers}" if keepers else ""
    return (str(entry.pid), "?", "", size(entry.memory), f"GPU {entry.device}", f"{what}{kept}", "")


def handle_summary(row: Row) -> str:
    counts: dict[str, int] = {}
    mapped = False
    for handle in row.process.handles:
        name = handle.path.removeprefix("/dev/")
        counts[name] = counts.get(name, 0) + 1
        mapped = mapped or handle.fd is None
    words = [name if count == 1 else f"{name}*{count}" for name, count in counts.items()]
    shown = " ".join(words[:4]) + (f" +{len(words) - 4}" if len(words) > 4 else "")
    return f"{shown} (mapped, descriptor closed)" if mapped else shown


def as_dict(
    rows: list[Row], gone: list[Gone], no_memory: str | None, reasons: list[str], *, sees_all_pids: bool
) -> dict[str, object]:
    return {
        "schema": 1,
        "holders": [_row_dict(row) for row in rows],
        "gone": [
            {"pid": entry.pid, "device": entry.device, "memory_bytes": entry.memory, "kept_by": list(entry.kept_by)}
            for entry in gone
        ],
        "memory_source": "nvml" if no_memory is None else None,
        "memory_reason": no_memory,
        "pids_are_the_machines": sees_all_pids,
        "kill": kill_line(rows),
        "complete": not reasons,
        "reasons": reasons,
    }


def _row_dict(row: Row) -> dict[str, object]:
    process, verdict = row.process, row.verdict
    paths = [handle.path for handle in process.handles]
    return {
        "pid": process.pid,
        "ppid": process.stat.ppid,
        "user": user_name(process.uid),
        "uid": process.uid,
        "command": list(process.command),
        "age_seconds": round(row.age, 1),
        "state": process.stat.state,
        "uninterruptible_sleep": process.blocked_threads > 0,
        "cgroup": process.cgroup,
        "container": row.container,
        "other_pid_namespace": row.other_pid_namespace,
        "pid_in_namespace": process.pids[-1],
        "handles": [{"path": path, "count": paths.count(path)} for path in sorted(set(paths))],
        "mapped_only": any(handle.fd is None for handle in process.handles),
        "cuda": True if CUDA_NODE in paths else None,
        "forked_without_exec": process.stat.forked_without_exec,
        "owner": verdict.owner,
        "orphaned": verdict.orphaned,
        "reaper": None if verdict.reaper is None else {"pid": verdict.reaper.pid, "comm": verdict.reaper.stat.comm},
        "evidence": verdict.evidence,
        "memory_bytes": row.memory,
    }


def size(number: int | None) -> str:
    return "?" if number is None else f"{number / (1 << 20):.0f} MiB"


def duration(seconds: float) -> str:
    """The two largest units."""
    days, rest = divmod(int(seconds), 86400)
    hours, rest = divmod(rest, 3600)
    minutes, rest = divmod(rest, 60)
    if days:
        return f"{days}d{hours:02}h"
    if hours:
        return f"{hours}h{minutes:02}m"
    return f"{minutes}m{rest:02}s" if minutes else f"{rest}s"

"""Puts together what was seen of the holders: /proc's facts, their parents, and the driver's account of memory."""

from __future__ import annotations

import os
import time
from typing import NamedTuple

from cuda_fork_guard import procfs
from cuda_fork_guard.cli.ancestry import Parent, Verdict, judge
from cuda_fork_guard.cli.gpu_memory import Charge
from cuda_fork_guard.cli.process_facts import Process
from cuda_fork_guard.cli.same_file import same_open_file


class Row(NamedTuple):
    process: Process
    parent: Parent | None
    verdict: Verdict
    age: float
    memory: int | None  # bytes; None: nobody knows
    container: str | None
    other_pid_namespace: bool | None


class Gone(NamedTuple):
    """Memory charged to a process that is not there any more, or not for us to see."""

    pid: int
    device: int
    memory: int | None
    kept_by: tuple[int, ...]  # the holders of that device which did not open it themselves


def rows_of(processes: tuple[Process, ...], charges: tuple[Charge, ...], proc: str, namespace: str | None) -> list[Row]:
    holders = {process.pid: process for process in processes}
    now = time.clock_gettime(time.CLOCK_BOOTTIME)
    return [_row(process, holders, charges, proc, namespace, now) for process in processes]


def _row(
    process: Process,
    holders: dict[int, Process],
    charges: tuple[Charge, ...],
    proc: str,
    namespace: str | None,
    now: float,
) -> Row:
    mine = [charge.bytes for charge in charges if charge.pid == process.pid]
    known = [size for size in mine if size is not None]
    parent = _parent(process.stat.ppid, proc)
    verdict = judge(
        process.stat,
        parent,
        shares_with_parent=_shares(process, holders.get(process.stat.ppid), parent),
        thread_names=process.thread_names,
        charged=bool(mine),
    )
    return Row(
        process=process,
        parent=parent,
        verdict=verdict,
        age=max(0.0, now - process.stat.start_ticks / os.sysconf("SC_CLK_TCK")),
        memory=sum(known) if known else None,
        container=procfs.container_of(process.cgroup),
        other_pid_namespace=None if None in (namespace, process.pid_namespace) else namespace != process.pid_namespace,
    )


def _parent(pid: int, proc: str) -> Parent | None:
    try:
        with open(f"{proc}/{pid}/stat", "rb") as file:
            return Parent(pid, procfs.parse_stat(file.read(procfs.STAT_LIMIT)))
    except (OSError, ValueError):
        return None


def _shares(process: Process, parent_holder: Process | None, parent: Parent | None) -> bool | None:
    """A fork keeps the numbers of descriptors, so only equal numbers are compared."""
    if parent_holder is None:
        # It holds nothing, unless it could not be looked at: a parent whose program is hidden from us is such a one.
        return False if parent is not None and any(parent.stat.image) else None
    theirs = {handle.fd: handle.path for handle in parent_holder.handles}
    unknown = False
    for handle in process.handles:
        if handle.fd is None:
            return True  # mappings alone are what is left when inherited descriptors were closed
        if theirs.get(handle.fd) != handle.path:
            continue
        same = same_open_file(process.tid, handle.fd, parent_holder.tid, handle.fd)
        if same:
            return True
        unknown = unknown or same is None
    return None if unknown else False


def gone_of(rows: list[Row], charges: tuple[Charge, ...], proc: str) -> list[Gone]:
    shown = {row.process.pid for row in rows}
    return [
        Gone(charge.pid, charge.device, charge.bytes, _keepers(rows, charge.minor))
        for charge in charges
        if charge.pid not in shown and not os.path.exists(f"{proc}/{charge.pid}")
    ]


def _keepers(rows: list[Row], minor: int) -> tuple[int, ...]:
    node = f"/dev/nvidia{minor}"
    return tuple(
        row.process.pid
        for row in rows
        if row.verdict.owner != "own" and any(handle.path == node for handle in row.process.handles)
    )

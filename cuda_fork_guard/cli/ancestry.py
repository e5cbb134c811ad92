"""Whose a process's device handles are: its own or its parent's, and whether that parent still lives.

Pure: what is known goes in, a verdict comes out, with the evidence in words.
"""

from __future__ import annotations

from typing import NamedTuple

from cuda_fork_guard.procfs import Stat

OWN = "own"
INHERITED = "inherited"


class Parent(NamedTuple):
    pid: int
    stat: Stat


class Verdict(NamedTuple):
    owner: str | None
    orphaned: bool | None
    reaper: Parent | None  # who adopted it, if it is orphaned
    evidence: str


def judge(
    stat: Stat,
    parent: Parent | None,
    *,
    shares_with_parent: bool | None,
    thread_names: tuple[str, ...],
    charged: bool,
) -> Verdict:
    """`shares_with_parent`: its handles are the parent's own open files; None if that can't be compared.
    `charged`: the driver accounts GPU memory to this very process.
    """
    if not stat.forked_without_exec:
        return Verdict(OWN, False, None, "has exec'ed since it was forked")
    orphaned = _is_orphaned(stat, parent)
    reaper = parent if orphaned else None
    if shares_with_parent:
        return Verdict(INHERITED, orphaned, reaper, "the same open files as in its parent")
    if charged:
        return Verdict(OWN, orphaned, reaper, "the driver accounts memory to it")
    if any(name.startswith("cuda") for name in thread_names):
        # Threads don't survive a fork: a driver's thread was started by a cuInit in this process.
        return Verdict(OWN, orphaned, reaper, "has a thread of a driver of its own")
    if orphaned:
        return Verdict(INHERITED, orphaned, reaper, "forked without exec, and who forked it is gone")
    if orphaned is None:
        return Verdict(None, None, None, "forked without exec by a process that can't be looked at")
    if shares_with_parent is None:
        return Verdict(None, orphaned, reaper, "forked without exec; its files can't be compared with its parent's")
    return Verdict(OWN, orphaned, reaper, "opened after the fork: its parent has other files")


def _is_orphaned(stat: Stat, parent: Parent | None) -> bool | None:
    """Given that it was forked without exec.

    That its parent is process 1 proves nothing: in a container process 1 is often the program itself. But a fork
    copies the places where exec put program, stack and arguments, so a parent in which they differ did not fork it.
    """
    if parent is None:
        return None
    if any(stat.image) and any(parent.stat.image):
        return stat.image != parent.stat.image
    return True if parent.pid == 1 else None

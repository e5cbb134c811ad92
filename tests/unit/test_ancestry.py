"""Whose handles they are: the table of what is known and what follows."""

from __future__ import annotations

import pytest

from cuda_fork_guard.cli.ancestry import Parent, judge
from cuda_fork_guard.procfs import PF_FORKNOEXEC, Stat

PROGRAM, OTHER, HIDDEN = (1000, 2000, 3000, 4000), (5000, 6000, 7000, 8000), (0, 0, 0, 0)


def stat(*, forked: bool = True, image: tuple[int, int, int, int] = PROGRAM, ppid: int = 50) -> Stat:
    return Stat("python", "S", ppid, PF_FORKNOEXEC if forked else 0, 1, 100, image)


def parent(image: tuple[int, int, int, int], pid: int = 50) -> Parent:
    return Parent(pid, Stat("parent", "S", 1, 0, 1, 1, image))


ONLY = ("python",)
WITH_DRIVER = ("python", "cuda-EvtHandlr")


@pytest.mark.parametrize(
    ("child", "of", "shares", "threads", "charged", "owner", "orphaned"),
    [
        # exec'ed: nothing else matters
        (stat(forked=False), parent(OTHER), None, ONLY, False, "own", False),
        (stat(forked=False), parent(OTHER, 1), None, ONLY, False, "own", False),
        (stat(forked=False), None, None, ONLY, False, "own", False),
        # its forker lives
        (stat(), parent(PROGRAM), True, ONLY, False, "inherited", False),
        (stat(), parent(PROGRAM), False, ONLY, False, "own", False),
        (stat(), parent(PROGRAM), None, ONLY, False, None, False),
        (stat(), parent(PROGRAM), None, WITH_DRIVER, False, "own", False),
        (stat(), parent(PROGRAM), None, ONLY, True, "own", False),
        (stat(), parent(PROGRAM, 1), True, ONLY, False, "inherited", False),
        (stat(), parent(PROGRAM, 1), False, ONLY, False, "own", False),
        # adopted: by process 1, or by a subreaper, which is told by its being another program
        (stat(), parent(OTHER, 1), False, ONLY, False, "inherited", True),
        (stat(), parent(OTHER), False, ONLY, False, "inherited", True),
        (stat(), parent(OTHER, 1), False, WITH_DRIVER, False, "own", True),
        (stat(), parent(OTHER, 1), False, ONLY, True, "own", True),
        # process 1 is init where its program is hidden from an ordinary user; of others nothing is guessed
        (stat(), parent(HIDDEN, 1), None, ONLY, False, "inherited", True),
        (stat(), parent(HIDDEN), None, ONLY, False, None, None),
        (stat(), None, None, ONLY, False, None, None),
        (stat(), None, None, WITH_DRIVER, False, "own", None),
    ],
)
def test_judge(child, of, shares, threads, charged, owner, orphaned):
    verdict = judge(child, of, shares_with_parent=shares, thread_names=threads, charged=charged)
    assert (verdict.owner, verdict.orphaned) == (owner, orphaned)
    assert verdict.reaper == (of if orphaned else None)
    assert verdict.evidence

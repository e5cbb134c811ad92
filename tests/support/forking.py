"""Programs that fork after CUDA was woken, and what the guard said about them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from support.child import Finished, environment, python

# Beside each program: the one place that wakes CUDA and the one that touches it, on lines that the tests can name.
CUDA = '''\
"""A program's own CUDA code, on the simulated driver."""

import ctypes
import os

import cuda_fork_guard
from cuda_fork_guard.testing import driver_folder

driver = ctypes.CDLL(os.path.join(driver_folder(), "libcuda.so.1"))


def wake():
    assert driver.cuInit(0) == 0


def touch(*_):
    return driver.cuDeviceGetCount(ctypes.byref(ctypes.c_int()))
'''
WAKE_LINE = CUDA.splitlines().index("def wake():") + 2
TOUCH_LINE = CUDA.splitlines().index("def touch(*_):") + 2

_REPORT = re.compile(
    r"cuda_fork_guard\[(?P<pid>\d+)\]: \[CFG102\] CUDA used in a process that was forked after [^\n]+\n"
    r"  used:    (?P<used>[^\n]+)\n"
    r"  forked:  (?P<forked>[^\n]+?) +\((?P<forker>[^\n]+), from pid (?P<parent>\d+)\)\n"
    r"  woken:   (?P<woken>[^\n]+)\n"
    r"  do:      (?P<do>[^\n]+)\n"
)


@dataclass(frozen=True)
class Report:
    pid: int
    used: str
    forked: str
    forker: str
    parent: int
    woken: str
    do: str


def reports(text: str) -> tuple[list[Report], str]:
    """The touch reports in a text, and everything else in it."""
    found = [
        Report(pid=int(m["pid"]), used=m["used"], forked=m["forked"], forker=m["forker"], parent=int(m["parent"]),
               woken=m["woken"], do=m["do"])
        for m in _REPORT.finditer(text)
    ]  # fmt: skip
    return found, _REPORT.sub("", text)


def check_touched(report: Report, *, forked: str, forker: str, advice: str) -> None:
    """A report about CUDA's `touch`, by a child of the given fork."""
    assert report.used.startswith(f"cuda_use.py:{TOUCH_LINE} in touch  "), report
    assert report.used.endswith("(cuDeviceGetCount)"), report
    assert (report.forked, report.forker) == (forked, forker), report
    assert advice in report.do, report
    assert report.woken.startswith(f"cuda_use.py:{WAKE_LINE} in wake "), report
    assert report.pid != report.parent, report


def run_program(
    source: str, folder: Path, policy: str, *, limit: float = 100, variables: dict[str, str] | None = None
) -> Finished:
    """Runs it as program.py in the folder, beside cuda_use.py."""
    (folder / "cuda_use.py").write_text(CUDA, encoding="utf-8")
    env = environment(CUDA_FORK_GUARD=policy, **(variables or {}))
    return python(source, cwd=folder, env=env, limit=limit)


def marked_line(source: str, mark: str = "# forks") -> int:
    """The number of the line with the mark at its end, in the file that `run_program` writes."""
    lines = [number for number, line in enumerate(source.splitlines(), 1) if line.endswith(mark)]
    assert len(lines) == 1, lines
    return lines[0]

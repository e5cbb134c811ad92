"""status(), which looks at every open descriptor, and the plain question whether the driver is up."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable

import cuda_fork_guard
from cuda_fork_guard import guard
from cuda_fork_guard.testing import simulated_cuda

from .table import Row, duration

FIXED_MOST = 70_000
PER_DESCRIPTOR_MOST = 1_500
QUESTION_MOST = 1_000
FEW, MANY = 12, 1_000


def measure(pairs: int) -> list[Row]:
    rows = [*_status("CUDA down", pairs), _question("no libcuda", pairs)]
    with simulated_cuda(state="loaded"):
        rows.append(_question("libcuda loaded", pairs))
    with simulated_cuda():
        rows += [_question("CUDA up", pairs), *_status("CUDA up", pairs)]
    return rows


def _median_time(function: Callable[[], object], samples: int, count: int = 1) -> float:
    """Of the thread's own time: nothing here waits, and what else the machine does would be counted otherwise."""
    found = []
    for _ in range(samples):
        began = time.thread_time_ns()
        for _ in range(count):
            function()
        found.append((time.thread_time_ns() - began) / count)
    return statistics.median(found)


def _status(state: str, pairs: int) -> list[Row]:
    """From what it takes with few descriptors and with many, of all kinds."""
    opened: list[int] = []
    times = []
    for number in (FEW, MANY):
        while len(opened) < number:
            opened += [*os.pipe(), os.open(__file__, os.O_RDONLY), os.open("/dev/null", os.O_RDONLY)]
        times.append(_median_time(cuda_fork_guard.status, max(50, pairs // 2)))
    for descriptor in opened:
        os.close(descriptor)
    each = (times[1] - times[0]) / (MANY - FEW)
    start = times[0] - FEW * each
    return [
        Row(
            f"status(), {state}: fixed part",
            with_guard=duration(start),
            goal=f"≤ {duration(FIXED_MOST)}",
            met=start <= FIXED_MOST,
        ),
        Row(
            f"status(), {state}: for each open descriptor",
            with_guard=duration(each),
            goal=f"≤ {duration(PER_DESCRIPTOR_MOST)}",
            met=each <= PER_DESCRIPTOR_MOST,
        ),
    ]


def _question(state: str, pairs: int) -> Row:
    native = guard.native
    assert native is not None
    took = _median_time(native.driver_up, pairs, 100)
    return Row(
        f"'is the driver up?', {state}",
        with_guard=duration(took),
        goal=f"≤ {duration(QUESTION_MOST)}",
        met=took <= QUESTION_MOST,
    )

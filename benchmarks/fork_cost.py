"""fork + wait, with the driver down and up, with the guard on and off."""

from __future__ import annotations

import os
import time

import cuda_fork_guard
from cuda_fork_guard.testing import simulated_cuda

from .alternate import alternate, workers
from .table import Row, row

DOWN_MOST = 30_000
UP_MOST = 150_000


def _fork_and_wait() -> float:
    began = time.perf_counter_ns()
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return time.perf_counter_ns() - began


def _guarded() -> float:
    cuda_fork_guard.install("watch")
    return _second_fork()


def _unguarded() -> float:
    cuda_fork_guard.uninstall()
    return _second_fork()


def _second_fork() -> float:
    """The first fork after a switch pays for the memory that the switch itself has written to."""
    _fork_and_wait()
    return _fork_and_wait()


def measure(pairs: int) -> list[Row]:
    rows = _within_one_process("CUDA down", pairs, DOWN_MOST)
    with simulated_cuda():
        rows += _within_one_process("CUDA up", pairs, UP_MOST)
    cuda_fork_guard.install("watch")
    return rows + _beside_an_unguarded_process(pairs)


def _within_one_process(state: str, pairs: int, most: float) -> list[Row]:
    measured = alternate(_unguarded, _guarded, pairs)
    noise = alternate(_unguarded, _unguarded, pairs)
    return [row(f"fork + wait, {state}: install() against uninstall()", measured, noise, most=most)]


def _beside_an_unguarded_process(pairs: int) -> list[Row]:
    """Also in this one: what uninstall() leaves behind, and that the guarded process is larger. So it has no goal."""
    with workers((), ("cuda_fork_guard",), ()) as (off, on, other):
        measured = alternate(off.sampler("fork", 1), on.sampler("fork", 1), pairs)
        noise = alternate(off.sampler("fork", 1), other.sampler("fork", 1), pairs)
    return [row("fork + wait, CUDA down: a guarded process against an unguarded one", measured, noise)]

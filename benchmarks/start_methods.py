"""First batch of a DataLoader by start method, from the second loader on: python -m benchmarks.start_methods

Each method is a program of its own (loader_program.py), and only the proved forkserver's imports the guard. They are
asked in turn, so that noise hits all alike. Printed are medians and their ratios; no test depends on them.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

from .table import Row, duration, rendered

METHODS = ("proved", "forkserver", "fork", "spawn")
GOALS = {"spawn": 1 / 25, "forkserver": 1.3, "fork": 2.0}


class Program:
    """One method's training script, alive until the end of the block."""

    def __init__(self, method: str) -> None:
        script = Path(__file__).with_name("loader_program.py")
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(script), method],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={name: value for name, value in os.environ.items() if name != "CUDA_FORK_GUARD"},
        )

    def ask(self, order: str) -> list[float]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(order + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"loader_program.py ended with exit code {self._process.wait()}")
        return [float(word) for word in answer.split()]

    def close(self) -> None:
        self._process.communicate()


def first_batches(programs: dict[str, Program], workers: int, loaders: int) -> list[Row]:
    times: dict[str, list[float]] = {method: [] for method in programs}
    for number in range(loaders + 1):
        for method, program in programs.items():
            # Spawn takes a second and more a loader, and varies little: it is asked less often.
            if method == "spawn" and number > 3:
                continue
            (seconds,) = program.ask(f"first {workers}")
            if number:  # the first one starts the servers and fills the caches
                times[method].append(seconds * 1e9)
    median = {method: statistics.median(values) for method, values in times.items()}
    halves = statistics.median(times["proved"][::2]) / statistics.median(times["proved"][1::2])
    return [
        Row(
            f"first batch, {workers} workers: proved forkserver against {method}",
            without=duration(median[method]),
            with_guard=duration(median["proved"]),
            ratio=f"{median['proved'] / median[method]:.3g}",
            noise=f"{halves:.2f}",
            goal=f"≤ {goal:.3g}",
            met=median["proved"] <= goal * median[method],
        )
        for method, goal in GOALS.items()
    ]


def verification(program: Program) -> Row:
    first, *more = (seconds * 1e9 for seconds in program.ask("verify"))
    return Row(
        "verification of one worker (first by hand; median of more)",
        with_guard=f"{duration(first)}; {duration(statistics.median(more))}",
        goal="≤ 1 ms",
        met=first <= 1e6,
    )


def growth(program: Program, loaders: int) -> Row:
    """After as many as memory needs to settle, so many more."""
    before = program.ask("loaders 20")
    after = program.ask(f"loaders {loaders}")
    words = [
        f"{int(now - then):+d} {what}"
        for now, then, what in zip(after, before, ("KiB", "fds", "processes"), strict=True)
    ]
    grown = after[1] > before[1] or after[2] > before[2] or after[0] - before[0] > 1024
    return Row(f"{loaders} loaders one after the other", added=", ".join(words), goal="no growth", met=not grown)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.start_methods", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--loaders", type=int, default=15, help="timed, of each method (default: %(default)s)")
    parser.add_argument("--growth", type=int, default=100, help="loaders for growth (default: %(default)s)")
    options = parser.parse_args()
    programs = {method: Program(method) for method in METHODS}
    rows: list[Row] = []
    try:
        for workers in (2, 8):
            print(f"{workers} workers …", file=sys.stderr, flush=True)
            rows += first_batches(programs, workers, options.loaders)
        rows.append(verification(programs["proved"]))
        print(f"{options.growth} loaders …", file=sys.stderr, flush=True)
        rows.append(growth(programs["proved"], options.growth))
    finally:
        for program in programs.values():
            program.close()
    print(f"CPython {platform.python_version()}, {os.cpu_count()} cores, torch preloaded in both forkservers.")
    print(rendered(rows))


if __name__ == "__main__":
    main()

"""`check-import` beside what it replaces: the interpreter under a debugger with a breakpoint on cuInit.

    python -m benchmarks.check_import [--runs 3] [MODULE ...]

Both import the module in a fresh process, in turn; printed are the medians and the ratio. gdb is needed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import time

from cuda_fork_guard import testing

GOALS = {"json": 10.0, "torch": 4.0}  # at least so many times faster than the debugger


def took(command: list[str], env: dict[str, str]) -> float:
    begin = time.perf_counter()
    subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - begin


def debugger(module: str) -> list[str]:
    return [
        "gdb", "-batch", "-nx", "-iex", "set debuginfod enabled off", "-ex", "set breakpoint pending on",
        "-ex", "break cuInit", "-ex", "run", "--args", sys.executable, "-c", f"import {module}",
    ]  # fmt: skip


def guard(module: str) -> list[str]:
    # cuda_fork_guard.import_probe is what check-import starts for each module; the command's own start is counted too.
    return [sys.executable, "-m", "cuda_fork_guard", "check-import", "--driver", "simulated", module]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.check_import")
    parser.add_argument("modules", nargs="*", metavar="MODULE", default=["json"])
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    if shutil.which("gdb") is None:
        print("gdb is not installed: there is nothing to compare with", file=sys.stderr)
        return 2
    folder = f"{testing.driver_folder()}:{os.environ.get('LD_LIBRARY_PATH', '')}".rstrip(":")
    env = {**os.environ, "LD_LIBRARY_PATH": folder}
    for module in options.modules or ["json"]:
        times: dict[str, list[float]] = {"gdb": [], "check-import": []}
        for _ in range(options.runs):
            times["gdb"].append(took(debugger(module), env))
            times["check-import"].append(took(guard(module), env))
        gdb, ours = statistics.median(times["gdb"]), statistics.median(times["check-import"])
        goal = GOALS.get(module)
        verdict = "" if goal is None else f", goal ≥ {goal:g}: {'met' if gdb / ours >= goal else 'MISSED'}"
        print(f"import {module}: gdb {gdb:.2f} s, check-import {ours:.2f} s, {gdb / ours:.1f} times faster{verdict}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

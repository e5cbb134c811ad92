"""What a Python process pays at start for the installed start-up line, without and with CUDA_FORK_GUARD.

Two virtual environments that differ in the line alone, processes in turn; each start is `python -c pass`. Beside that,
the line alone, as `site` reads and runs it, over and over in one process: other work on the machine shows less in it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import site
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]


def seconds(python: Path, env: dict[str, str]) -> float:
    begin = time.perf_counter()
    subprocess.run([python, "-c", "pass"], env=env, check=True)
    return time.perf_counter() - begin


def environment(folder: Path, *files: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    command = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    for file in files:
        shutil.copy(file, site)
    return python


def compare(name: str, pairs: int, first: tuple[Path, dict[str, str]], second: tuple[Path, dict[str, str]]) -> None:
    differences = []
    for number in range(pairs):
        # Whoever comes second finds the caches warm: take turns.
        if number % 2:
            a, b = seconds(*first), seconds(*second)
        else:
            b, a = seconds(*second), seconds(*first)
        differences.append((b - a) * 1e3)
    quarters = statistics.quantiles(differences, n=4)
    print(f"  {name:42} {quarters[1]:+7.3f} ms  (half of all pairs: {quarters[0]:+.3f} to {quarters[2]:+.3f})")


def line_alone(folder: Path, times: int) -> None:
    shutil.copy(ROOT / "cuda_fork_guard.pth", folder)
    os.environ.pop("CUDA_FORK_GUARD", None)
    took = []
    for _ in range(times):
        begin = time.perf_counter()
        site.addpackage(str(folder), "cuda_fork_guard.pth", set())
        took.append((time.perf_counter() - begin) * 1e3)
    print(
        f"  {'the line alone, read and run by site':42} {statistics.median(took):+7.3f} ms  (twice in an environment)"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=1000)
    args = parser.parse_args()
    env = {name: value for name, value in os.environ.items() if not name.startswith(("CUDA_", "PYTHON"))}
    with tempfile.TemporaryDirectory() as folder:
        line, entry = ROOT / "cuda_fork_guard.pth", ROOT / "_cuda_fork_guard_entry.py"
        bare = environment(Path(folder) / "bare")
        with_line = environment(Path(folder) / "line", line, entry)
        print(f"added to the start of a process; median of {args.pairs} pairs")
        compare("nothing (the same environment twice)", args.pairs, (bare, env), (bare, env))
        compare("the line, variable not set", args.pairs, (bare, env), (with_line, env))
        line_alone(Path(folder), args.pairs)
        # This interpreter has the package, and asks for it or does not.
        here = Path(sys.executable)
        compare("CUDA_FORK_GUARD=watch", args.pairs, (here, env), (here, {**env, "CUDA_FORK_GUARD": "watch"}))


if __name__ == "__main__":
    main()

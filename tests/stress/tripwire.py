"""The long form of the tripwire's stress test: ``python tests/stress/tripwire.py [--forks 10000] [LIBRARY ...]``.

Each child of every fork is touched by four threads at once, under a storm of signals; see tests/tripwire/native/stress.cpp.
Without a LIBRARY: the fake driver, the simulated one and every real one in the cache. Exit code 1 if anything was wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support import tripwire
from support.child import run


def libraries(programs: tripwire.Programs) -> list[Path]:
    found = [programs.fake]
    try:
        from cuda_fork_guard.testing import driver_folder

        found.append(Path(driver_folder()) / "libcuda.so.1")
    except ImportError:
        print("not installed with its simulated driver", file=sys.stderr)
    return found + [
        path for path in (tripwire.DRIVERS / major / "libcuda.so.1" for major in tripwire.MAJORS) if path.is_file()
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--forks", type=int, default=10_000)
    parser.add_argument("--limit", type=float, default=1800, help="seconds for each library")
    parser.add_argument("library", nargs="*", type=Path)
    arguments = parser.parse_args()
    programs = tripwire.build(tripwire.system_compiler())
    wrong = 0
    for library in arguments.library or libraries(programs):
        begin = time.monotonic()
        command = [str(programs.probe), str(library), "stress", str(arguments.forks)]
        finished = run(command, limit=arguments.limit)
        wrong += finished.code != 0
        print(f"{library}: {' '.join(finished.lines)}, exit code {finished.code}, {time.monotonic() - begin:.0f} s")
        print(finished.err, end="", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

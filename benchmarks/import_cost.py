"""What importing the guard adds to a bare interpreter, in time and memory, beside importing threadpoolctl."""

from __future__ import annotations

import statistics
import subprocess
import time
from pathlib import Path

from .alternate import Sample, alternate
from .installed import bare_python, installed_copy
from .table import Pairs, Row, duration, row

MEMORY_MOST = 2048  # KiB

_MEMORY = """
def resident():
    with open("/proc/self/status") as status:
        return int(next(line for line in status if line.startswith("VmRSS")).split()[1])
resident()
before = resident()
import cuda_fork_guard
print(resident() - before)
"""


def _whole_run(folder: Path, code: str) -> Sample:
    command = bare_python(folder, code)

    def sample() -> float:
        began = time.perf_counter_ns()
        subprocess.run(command, check=True)
        return time.perf_counter_ns() - began

    return sample


def measure(pairs: int) -> list[Row]:
    runs = max(20, pairs // 5)
    with installed_copy() as folder:
        bare, again = _whole_run(folder, "pass"), _whole_run(folder, "pass")
        noise = alternate(bare, again, runs)
        ours = alternate(bare, _whole_run(folder, "import cuda_fork_guard"), runs)
        theirs = alternate(bare, _whole_run(folder, "import threadpoolctl"), runs)
        return [*_times(ours, theirs, noise), _memory(folder)]


def _times(ours: Pairs, theirs: Pairs, noise: Pairs) -> list[Row]:
    share = ours.added() / theirs.added()
    return [
        row("python -c 'import threadpoolctl' against 'pass'", theirs, noise),
        row("python -c 'import cuda_fork_guard' against 'pass'", ours, noise),
        Row(
            "import cuda_fork_guard, as a share of import threadpoolctl",
            without=duration(theirs.added()),
            with_guard=duration(ours.added()),
            ratio=f"{share:.2f}",
            goal="≤ 0.5",
            met=share <= 0.5,
        ),
    ]


def _memory(folder: Path) -> Row:
    command = bare_python(folder, _MEMORY)
    added = statistics.median(
        int(subprocess.run(command, check=True, capture_output=True, text=True).stdout) for _ in range(11)
    )
    return Row(
        "resident memory that the import adds",
        added=f"{added / 1024:.2f} MiB",
        goal=f"≤ {MEMORY_MOST / 1024:.0f} MiB",
        met=added <= MEMORY_MOST,
    )

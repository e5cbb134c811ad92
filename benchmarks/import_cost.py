"""What importing the guard adds to a bare interpreter, in time and memory, beside importing threadpoolctl.

The package is copied as a wheel lays it out: an editable install's finder would be measured with it.
"""

from __future__ import annotations

import importlib.util
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cuda_fork_guard

from .alternate import Sample, alternate
from .table import Pairs, Row, duration, row

MEMORY_MOST = 2048  # KiB

_MEMORY = """
import sys
def resident():
    with open("/proc/self/status") as status:
        return int(next(line for line in status if line.startswith("VmRSS")).split()[1])
resident()
before = resident()
import {module}
print(resident() - before)
"""


def _installed_copy(folder: Path) -> None:
    package = Path(cuda_fork_guard.__file__).parent
    shutil.copytree(package, folder / "cuda_fork_guard", ignore=shutil.ignore_patterns("__pycache__"))
    native = importlib.util.find_spec("cuda_fork_guard._native")
    assert native is not None
    assert native.origin is not None
    for library in Path(native.origin).parent.glob("*.so"):
        shutil.copy(library, folder / "cuda_fork_guard")
    threadpoolctl = importlib.util.find_spec("threadpoolctl")
    assert threadpoolctl is not None, "pip install '.[bench]' brings threadpoolctl, which this is compared with"
    assert threadpoolctl.origin is not None
    shutil.copy(threadpoolctl.origin, folder)


def _python(folder: Path, code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(folder)!r}); {code}"]


def _whole_run(folder: Path, code: str) -> Sample:
    command = _python(folder, code)

    def sample() -> float:
        began = time.perf_counter_ns()
        subprocess.run(command, check=True)
        return time.perf_counter_ns() - began

    return sample


def measure(pairs: int) -> list[Row]:
    runs = max(20, pairs // 5)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _installed_copy(folder)
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
    code = _MEMORY.format(module="cuda_fork_guard").strip()
    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(folder)!r})\n{code}"]
    added = statistics.median(
        int(subprocess.run(command, check=True, capture_output=True, text=True).stdout) for _ in range(11)
    )
    return Row(
        "resident memory that the import adds",
        added=f"{added / 1024:.2f} MiB",
        goal=f"≤ {MEMORY_MOST / 1024:.0f} MiB",
        met=added <= MEMORY_MOST,
    )

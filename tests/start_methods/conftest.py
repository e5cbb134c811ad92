"""Child programs of these tests may import what stands in preloads/."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import child
from support.program import Program

from cuda_fork_guard.testing import driver_folder

PRELOADS = Path(__file__).parent / "preloads"


@pytest.fixture
def simulated_path() -> str:
    """For LD_LIBRARY_PATH: programs find the simulated driver as their libcuda.so.1."""
    return driver_folder()


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """program(code) runs it as program.py in an empty folder, with preloads/ importable and a hard limit."""

    def run(
        code: str, *arguments: str, limit: float = 60, flags: tuple[str, ...] = (), **variables: str | None
    ) -> child.Finished:
        variables.setdefault("PYTHONPATH", str(PRELOADS))
        variables.setdefault("COUNTED", str(tmp_path / "counted.txt"))
        return child.python(
            code, *arguments, limit=limit, env=child.environment(**variables), cwd=tmp_path, flags=flags
        )

    return run

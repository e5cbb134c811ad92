"""pytest-forked: collection wakes CUDA, each test runs in a forked process.

Whether the test passes is not asked: pytest-forked 1.7.5 can't send a report of pytest 9.2 home, and fails each test.
"""

from __future__ import annotations

import sys
from pathlib import Path

from support.child import Finished, environment, run
from support.forking import CUDA, check_touched, reports
from support.installed import needs

TESTS = """
from cuda_use import touch, wake

wake()

def test_model():
    assert touch() == 3
"""
# The plugin keeps its children's stderr; what they said is still in the record.
CONFTEST = """
import cuda_fork_guard

def pytest_unconfigure(config):
    for event in cuda_fork_guard.events():
        if event.kind == "touch":
            print(event.text)
"""


def collect(folder: Path, policy: str) -> Finished:
    needs("pytest_forked")
    (folder / "cuda_use.py").write_text(CUDA)
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_it.py").write_text(TESTS)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--forked",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "test_it.py",
    ]
    return run(command, env=environment(CUDA_FORK_GUARD=policy), cwd=folder)


def forked_line() -> str:
    import pytest_forked

    lines = Path(pytest_forked.__file__).read_text().splitlines()
    number = next(number for number, line in enumerate(lines, 1) if "proc.start()" in line or "ForkedFunc(" in line)
    return f"{pytest_forked.__file__}:{number} in forked_run_report"


def test_watch_records_the_touch(tmp_path: Path) -> None:
    finished = collect(tmp_path, "watch")
    found, rest = reports(finished.out)
    assert len(found) == 1 and "[CFG" not in rest
    check_touched(found[0], forked=forked_line(), forker="pytest-forked", advice="keep CUDA out of collection")
    assert finished.err == ""


def test_warn_shows_in_pytest_s_summary(tmp_path: Path) -> None:
    finished = collect(tmp_path, "warn")
    assert (
        "UnsafeForkWarning: [CFG101]" in finished.out
        and f"\n    forked:  {forked_line()}  (pytest-forked)\n" in finished.out
    )


def test_block_ends_the_session_with_the_reason(tmp_path: Path) -> None:
    finished = collect(tmp_path, "block")
    said = finished.out + finished.err
    assert finished.code != 0 and "UnsafeForkError: [CFG101] fork refused" in said and "drop --forked" in said

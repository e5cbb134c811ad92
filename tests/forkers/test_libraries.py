"""Libraries that fork when the program calls them: the user's line is named, with advice that fits the library."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from support.child import Finished
from support.forking import check_touched, marked_line, reports, run_program

from forkers.program import Program
from forkers.programs import PROGRAMS

every_program = pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.id)
# Python's own warning about forks beside threads (3.12) is not the guard's.
QUIET = {"PYTHONWARNINGS": "ignore::DeprecationWarning"}


def run(program: Program, folder: Path, policy: str) -> Finished:
    missing = [name for name in program.needs if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (scripts/forkers_with_real_packages has it)")
    return run_program(program.text(), folder, policy, limit=program.limit, variables=QUIET)


def forked_line(program: Program) -> str:
    return f"program.py:{marked_line(program.text())} in main"


@every_program
def test_watch_says_nothing_in_the_parent_and_reports_the_child(program: Program, tmp_path: Path) -> None:
    finished = run(program, tmp_path, "watch").ok()
    found, rest = reports(finished.err)
    assert "cuda_fork_guard" not in rest and "[CFG" not in rest
    assert rest == "" or program.chatty
    assert found
    for report in found:
        check_touched(report, forked=forked_line(program), forker=program.name, advice=program.advice)
    assert len({report.pid for report in found}) == len(found)


@every_program
def test_warn_warns_once_on_the_user_s_line(program: Program, tmp_path: Path) -> None:
    finished = run(program, tmp_path, "warn").ok()
    found, rest = reports(finished.err)
    assert found
    assert rest.count("UnsafeForkWarning") == program.warnings, rest
    line = marked_line(program.text())
    assert f"program.py:{line}: UnsafeForkWarning: [CFG101] fork while CUDA is initialized" in rest
    assert f"\n  forked:  {forked_line(program)}  ({program.name})\n" in rest
    assert program.advice in rest


@every_program
def test_block_refuses(program: Program, tmp_path: Path) -> None:
    finished = run(program, tmp_path, "block")
    found, rest = reports(finished.err)
    assert finished.code == 1 and not found, finished
    assert program.refused in rest
    assert f"\n  forked:  {forked_line(program)}  ({program.name})\n" in rest
    assert program.advice in rest

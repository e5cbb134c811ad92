"""The walk through docs/driver-corruption.md: its program is run, and what it is said to print is what it prints."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from support.child import Finished, environment, run
from support.markdown import ROOT, blocks_of

from cuda_fork_guard.testing import driver_folder

PROGRAM, REPORT, RECORD, UNSOUND = (block.text for block in blocks_of(ROOT / "docs" / "driver-corruption.md"))


def without_pids(text: str) -> str:
    text = re.sub(r" \([\w.+-]+: \w+\)$", "", text, flags=re.MULTILINE)  # the native caller differs by build
    return re.sub(r"(?<=\[)\d+(?=\])|(?<=pid )\d+", "N", text)


def run_it(folder: Path, **variables: str) -> Finished:
    (folder / "train.py").write_text(PROGRAM, encoding="utf-8")
    env = environment(LD_LIBRARY_PATH=driver_folder(), PYTHONWARNINGS="ignore::DeprecationWarning", **variables)
    return run([sys.executable, "train.py"], env=env, cwd=folder)


def test_it_prints_what_is_said(tmp_path: Path) -> None:
    finished = run_it(tmp_path).ok()
    assert without_pids(finished.err) == without_pids(REPORT)
    assert without_pids(finished.out) == without_pids(RECORD)


def test_a_context_that_is_no_longer_sound(tmp_path: Path) -> None:
    finished = run_it(tmp_path, CUDA_FORK_GUARD_SIM="fail=cuMemAlloc_v2:700:0")
    assert finished.code == 1
    assert finished.err.endswith(UNSOUND)


@pytest.mark.parametrize("policy", ["warn", "block"])
def test_the_policies_speak_at_the_same_fork(policy: str, tmp_path: Path) -> None:
    finished = run_it(tmp_path, CUDA_FORK_GUARD=policy)
    forked = re.search(r"forked:  (\S+ in \w+) ", REPORT)
    assert forked is not None
    assert f"\n  forked:  {forked[1]}  (ProcessPoolExecutor)\n" in finished.err

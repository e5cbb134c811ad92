"""scripts/demo and scripts/test on a machine that lacks something: one sentence says what, and nothing is half made."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from support.child import Finished, environment, run
from support.markdown import ROOT

TOOLS = ("sh", "dirname", "uname", "find", "sort", "xargs", "cat", "cksum", "tr", "grep", "mv", "mkdir")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout without .venv, and a path that has only what every system has."""
    folder = tmp_path / "checkout"
    for part in ("scripts", "csrc", "CMakeLists.txt", "pyproject.toml"):
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, folder / part)
        else:
            shutil.copy(source, folder / part)
    (folder / "cuda_fork_guard").mkdir()
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found is not None, f"{tool} isn't here"
        (bin_folder / tool).symlink_to(found)
    return folder


def _python_that(checkout: Path, does: str) -> None:
    """A python3 on that path which does something of its own first, then is this Python."""
    program = checkout.parent / "bin" / "python3"
    program.write_text(f'#!/bin/sh\n{does}\nexec {sys.executable} "$@"\n')
    program.chmod(0o755)


def _start(checkout: Path, script: str, **variables: str) -> Finished:
    path = str(checkout.parent / "bin")
    return run(["/bin/sh", f"scripts/{script}"], cwd=checkout, env=environment(PATH=path, PYTHON=None, **variables))


@pytest.mark.parametrize("script", ["demo", "test"])
def test_no_python(checkout: Path, script: str) -> None:
    finished = _start(checkout, script)
    assert finished.code == 2
    assert finished.err == (
        "Python 3.10 or newer is needed: none was found on the path (PYTHON=/path/to/python names one).\n"
    )
    assert not (checkout / ".venv").exists()


def test_no_venv_module(checkout: Path) -> None:
    _python_that(checkout, 'case "$2" in *ensurepip*) exit 1;; esac')
    finished = _start(checkout, "demo")
    assert finished.code == 2
    assert finished.err == (
        "python3 can't make a virtual environment: install its venv module (on Debian and Ubuntu: python3-venv).\n"
    )
    assert not (checkout / ".venv").exists()


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="elsewhere nothing is compiled")
@pytest.mark.parametrize(
    ("variables", "does", "said"),
    [
        ({"CXX": "no-such-compiler"}, "", "A C++ compiler is needed: no-such-compiler can't be run"),
        (
            {"CXX": "true"},
            'case "$2" in *Python.h*) exit 1;; esac',
            "python3's C headers are needed: Python.h is missing",
        ),
    ],
    ids=["compiler", "headers"],
)
def test_nothing_to_build_with(checkout: Path, variables: dict[str, str], does: str, said: str) -> None:
    (checkout.parent / "bin" / "true").symlink_to("/bin/true")
    _python_that(checkout, does)
    finished = _start(checkout, "demo", **variables)
    assert finished.code == 2
    assert finished.err.startswith(said)
    assert len(finished.err.splitlines()) == 1
    assert not (checkout / ".venv").exists()

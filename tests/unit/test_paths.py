"""Whose code is a file?"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

import cuda_fork_guard
from cuda_fork_guard import paths

STDLIB = os.path.dirname(os.__file__)
GUARD = os.path.dirname(cuda_fork_guard.__file__)


@pytest.mark.parametrize(
    "file",
    [
        "<frozen importlib._bootstrap>",
        "<frozen os>",
        threading.__file__,
        f"{STDLIB}/multiprocessing/util.py",
    ],
)
def test_python_s_own(file: str) -> None:
    assert paths.is_stdlib(file) and not paths.is_user(file)


@pytest.mark.parametrize(
    "file",
    [
        f"{STDLIB}/site-packages/torch/utils/data/dataloader.py",
        "/usr/lib/python3/dist-packages/numpy/core.py",
        "/home/me/.local/lib/python3.11/site-packages/mine.py",
    ],
)
def test_an_installed_package_is_neither_python_s_nor_the_user_s(file: str) -> None:
    assert paths.is_installed(file) and not paths.is_stdlib(file) and not paths.is_user(file)


@pytest.mark.parametrize(
    "file",
    [
        os.path.join(GUARD, "guard.py"),
        os.path.join(os.path.dirname(GUARD), "_cuda_fork_guard_entry.py"),
    ],
)
def test_the_guard_s_own(file: str) -> None:
    assert paths.is_guard(file) and not paths.is_user(file)


@pytest.mark.parametrize(
    "file",
    [
        "train.py", "/home/me/train.py", "<string>", "<stdin>", "<ipython-input-3-abc>", "/tmp/ipykernel_7/123.py", f"{STDLIB}x/train.py", "/home/me/site-packages.py", "",
    ],
)  # fmt: skip
def test_everything_else_is_the_user_s(file: str) -> None:
    assert paths.is_user(file)


def test_a_neighbour_with_a_longer_name_is_not_the_guard() -> None:
    assert not paths.is_guard(f"{GUARD}_user/train.py")


def test_shown_relative_to_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    here = os.getcwd()
    assert paths.shown(f"{here}/pkg/train.py") == "pkg/train.py"
    assert paths.shown(f"{here}-other/train.py") == f"{here}-other/train.py"
    assert paths.shown("<string>") == "<string>"


def test_shown_as_it_is_in_the_root_folder_and_in_a_deleted_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir("/")
    assert paths.shown("/home/me/train.py") == "/home/me/train.py"
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert paths.shown("/home/me/train.py") == "/home/me/train.py"


@pytest.mark.parametrize(
    ("script", "expected"),
    [("bin/serve", True), ("linked/serve", True), ("bin/serve.py", False), ("bin/large", False), ("home/serve", False),
     ("bin/missing", False)],
)  # fmt: skip
def test_a_program_that_an_installer_wrote_is_not_the_user_s(
    script: str, expected: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("bin", "home", "linked"):
        (tmp_path / name).mkdir()
    for name in ("bin/serve", "bin/serve.py", "home/serve"):
        (tmp_path / name).write_text("import sys\nfrom server import run\nsys.exit(run())\n")
    (tmp_path / "bin/large").write_text("# a program of the user's own\n" * 100)
    (tmp_path / "linked/serve").symlink_to("../bin/serve")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [script])
    found = paths.launched()
    assert found == (f"{tmp_path}/{script}" if expected else "")


@pytest.mark.parametrize("argv", [[], [""], ["-c"], ["-m"], [None], None])
def test_a_program_without_a_file_is_none(argv: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", argv)
    assert paths.launched() == ""

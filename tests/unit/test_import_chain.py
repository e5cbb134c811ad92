"""The chain of imports, with the machinery folded away."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cuda_fork_guard import frames, import_chain
from cuda_fork_guard.frames import Frame

STDLIB = str(Path(os.__file__).parent)
SITE = f"{STDLIB}/site-packages"
GUARD = str(Path(frames.__file__).parent)
BOOTSTRAP = (
    "<frozen importlib._bootstrap>:1178 _find_and_load",
    "<frozen importlib._bootstrap>:1149 _find_and_load_unlocked",
    "<frozen importlib._bootstrap>:690 _load_unlocked",
    "<frozen importlib._bootstrap_external>:940 exec_module",
    "<frozen importlib._bootstrap>:241 _call_with_frames_removed",
)
IMPORTLIB = (f"{STDLIB}/importlib/__init__.py:126 import_module", "<frozen importlib._bootstrap>:1206 _gcd_import")


def stack(*rows: str) -> tuple[Frame, ...]:
    found = []
    for row in rows:
        place, _, function = row.rpartition(" ")
        file, _, line = place.rpartition(":")
        found.append(Frame(file=file, line=int(line), function=function))
    return tuple(found)


@pytest.fixture(autouse=True)
def _in_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def chain(*rows: str) -> tuple[str, ...]:
    here = os.getcwd()
    return import_chain.read(stack(*(row.replace("./", f"{here}/", 1) for row in rows)), "cuInit")


TORCH = (f"{SITE}/torch/cuda/__init__.py:174 is_available", f"{SITE}/torch/cuda/__init__.py:9 _count")


def test_the_issues_example() -> None:
    rows = (
        "./train.py:3 <module>",
        *BOOTSTRAP,
        "./pkg/__init__.py:10 <module>",
        *BOOTSTRAP,
        "./pkg/ops.py:44 <module>",
    )
    assert chain(*rows, *TORCH) == ("train.py:3", "pkg/__init__.py:10", "pkg/ops.py:44", "torch.cuda.is_available")
    # directly: nothing of Python stands between
    assert chain(*rows) == ("train.py:3", "pkg/__init__.py:10", "pkg/ops.py:44", "cuInit")


def test_no_import_no_chain() -> None:
    assert chain("./train.py:3 <module>", "./train.py:9 main", *TORCH) == ()
    assert chain() == ()


def test_functions_of_the_last_module_are_steps() -> None:
    rows = ("./train.py:3 <module>", *BOOTSTRAP, "./pkg/ops.py:44 <module>", "./pkg/probe.py:7 find", *TORCH)
    assert chain(*rows) == ("train.py:3", "pkg/ops.py:44", "pkg/probe.py:7", "torch.cuda.is_available")


def test_installed_packages_are_shown_from_their_folder() -> None:
    rows = ("./train.py:3 <module>", *BOOTSTRAP, f"{SITE}/flash/__init__.py:10 <module>", f"{SITE}/flash/jit.py:7 find")
    assert chain(*rows, *TORCH) == ("train.py:3", "flash/__init__.py:10", "flash/jit.py:7", "torch.cuda.is_available")


def test_an_import_inside_a_function_and_by_importlib() -> None:
    rows = ("./train.py:30 <module>", "./train.py:20 load", *IMPORTLIB, *BOOTSTRAP, "./plugin.py:2 <module>", *TORCH)
    assert chain(*rows) == ("train.py:20", "plugin.py:2", "torch.cuda.is_available")


def test_a_loader_of_its_own_kind_is_no_step() -> None:
    loader = f"{SITE}/_pytest/assertion/rewrite.py:184 exec_module"
    rows = (
        f"{SITE}/_pytest/python.py:520 importtestmodule",
        *IMPORTLIB,
        *BOOTSTRAP[:3],
        loader,
        "./test_a.py:5 <module>",
    )
    assert chain(*rows, *TORCH) == ("_pytest/python.py:520", "test_a.py:5", "torch.cuda.is_available")


def test_the_guards_own_import_is_no_step() -> None:
    rows = (f"{GUARD}/import_probe.py:20 main", *IMPORTLIB, *BOOTSTRAP, "./pkg/__init__.py:10 <module>", *TORCH)
    assert chain(*rows) == ("pkg/__init__.py:10", "torch.cuda.is_available")


def test_the_machinery_itself_at_the_end() -> None:
    """A finder or loader hook that wakes CUDA, with no module begun."""
    assert chain("./train.py:3 <module>", *BOOTSTRAP[:2], "./hook.py:8 find_spec") == (
        "train.py:3",
        "hook.py:8",
        "cuInit",
    )
    assert chain("./train.py:3 <module>", *BOOTSTRAP[:2]) == ("train.py:3", "cuInit")


def test_of_a_long_chain_the_middle_is_left_out() -> None:
    rows = [row for number in range(20) for row in (f"./m{number}.py:{number + 1} <module>", *BOOTSTRAP)]
    found = chain(*rows, "./last.py:1 <module>", *TORCH)
    assert found == (
        *(f"m{number}.py:{number + 1}" for number in range(6)),
        "(9 more)",
        *(f"m{number}.py:{number + 1}" for number in range(15, 20)),
        "last.py:1",
        "torch.cuda.is_available",
    )


def test_a_gap_is_no_step() -> None:
    frames_ = (
        frames.gap(3),
        *stack(f"{os.getcwd()}/train.py:3 <module>", *BOOTSTRAP, f"{os.getcwd()}/pkg.py:1 <module>"),
    )
    assert import_chain.read(frames_, "cuInit") == ("train.py:3", "pkg.py:1", "cuInit")

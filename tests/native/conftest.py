"""Builds the core's pure functions into a small library of their own, with undefined behaviour made fatal."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path

import pytest
from support.child import run
from support.core import Core

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "csrc"
CORE = ("dump_line", "python_stack", "stack_join", "user_frame", "cells", "touch_report", "safe_output")
# python_stack.cpp reaches for a thread's dump, which these functions don't need.
STAND_IN = """
#include "core/python_dump.hpp"
namespace cfg { void dump_python_stack(PythonStack&) noexcept {} }
"""


@pytest.fixture(scope="session")
def core(tmp_path_factory: pytest.TempPathFactory) -> Core:
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    folder = tmp_path_factory.mktemp("core")
    (folder / "stand_in.cpp").write_text(STAND_IN)
    library = folder / "core_checks.so"
    sources = [str(SOURCES / "core" / f"{name}.cpp") for name in CORE]
    flags = [
        "-std=c++17",
        "-D_GNU_SOURCE",
        "-O1",
        "-fPIC",
        "-shared",
        "-fsanitize=undefined",
        "-fno-sanitize-recover",
        "-Wall",
        "-Wextra",
    ]
    command = [compiler, *flags, "-I", str(SOURCES), "-o", str(library), str(HERE / "core_checks.cpp")]
    run([*command, str(folder / "stand_in.cpp"), *sources], limit=120).ok()
    return Core(ctypes.CDLL(str(library)))

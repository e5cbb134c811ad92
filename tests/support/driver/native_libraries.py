"""Builds the small C libraries of the checks."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.child import run

SOURCES = Path(__file__).with_name("native")


def compiler() -> str:
    found = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if found is None:
        pytest.skip("no C compiler")
    return found


def build(name: str, folder: Path) -> str:
    """native/NAME.c as a shared library in the folder."""
    library = folder / f"{name}.so"
    source = SOURCES / f"{name}.c"
    command = [compiler(), "-Wall", "-Werror", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl", "-pthread"]
    run(command).ok()
    return str(library)

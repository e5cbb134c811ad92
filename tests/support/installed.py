"""Packages that a test needs and that an ordinary test run does without."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

import pytest

_WHERE = "scripts/forkers_with_real_packages has it"


def needs(*modules: str) -> None:
    """Skips the test, unless all of them can be imported."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} ({_WHERE})")


def installed_program(name: str) -> str:
    """The program that pip installed beside this Python, as a user starts it."""
    program = Path(sys.executable).with_name(name)
    if not program.exists():
        pytest.skip(f"not installed: {name} ({_WHERE})")
    return os.fspath(program)


def system_program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"not installed: {name} ({_WHERE})")
    return found

"""Whose code is a file? And how is it shown."""

from __future__ import annotations

import os

_STDLIB = os.path.dirname(os.__file__) + os.sep
_GUARD = os.path.dirname(os.path.abspath(__file__)) + os.sep
_ENTRY = os.sep + "_cuda_fork_guard_entry.py"  # an editable install has it elsewhere than the package


def is_guard(file: str) -> bool:
    """The guard's own code never is the line that a message names."""
    return file.startswith(_GUARD) or file.endswith(_ENTRY)


def is_installed(file: str) -> bool:
    """Below a site-packages folder (Debian's is called dist-packages)."""
    return f"{os.sep}site-packages{os.sep}" in file or f"{os.sep}dist-packages{os.sep}" in file


def in_package_folder(file: str) -> str:
    """``torch/cuda/__init__.py`` for an installed file; for the standard library's and for those below the current folder
    what follows that folder; else the file as it is."""
    for folder in (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}"):
        if folder in file:
            return file.rpartition(folder)[2]
    return file[len(_STDLIB) :] if file.startswith(_STDLIB) else shown(file)


def is_stdlib(file: str) -> bool:
    """Part of Python itself. Frozen modules have no path."""
    return file.startswith("<frozen ") or (file.startswith(_STDLIB) and not is_installed(file))


def is_user(file: str) -> bool:
    """Neither Python's, nor an installed package's, nor the guard's."""
    return not (is_guard(file) or is_stdlib(file) or is_installed(file))


def shown(file: str) -> str:
    """Relative to the current folder where it lies below it, else as it is."""
    try:
        here = os.getcwd() + os.sep
    except OSError:  # the folder was deleted
        return file
    return file[len(here) :] if file.startswith(here) and len(here) > 1 else file


def prefixes() -> tuple[str, str]:
    """(standard library, guard), for the native side's own choice of a frame."""
    return _STDLIB, _GUARD

"""Whose code is a file? And how is it shown."""

from __future__ import annotations

import os
import sys

_STDLIB = os.path.dirname(os.__file__) + os.sep
_GUARD = os.path.dirname(os.path.abspath(__file__)) + os.sep
_LONGEST_LAUNCHER = 2048  # bytes; pip writes some 250, older tools up to 1,000
_ENTRY = os.sep + "_cuda_fork_guard_entry.py"  # an editable install has it elsewhere than the package


def _launcher(script: str) -> str:
    if not script or script.endswith(".py") or os.stat(script).st_size > _LONGEST_LAUNCHER:
        return ""
    folders = [os.path.dirname(sys.executable or ""), os.path.join(sys.prefix, "bin"), "/usr/local/bin"]
    folders.append(os.path.join(getattr(sys.modules.get("site"), "USER_BASE", None) or sys.prefix, "bin"))
    # Tools that give each program an environment of its own link it to where they are run from.
    here = os.path.dirname(os.path.realpath(script))
    if here not in folders and here not in map(os.path.realpath, folders):
        return ""
    return os.path.join(os.getcwd(), script)  # as Python names the file of the main program


def launched() -> str:
    """The running program, if it is one that an installer wrote (bin/gunicorn, bin/celery): a few lines that are no more the
    user's own than the package that they start. "" if it isn't."""
    try:
        return _launcher(sys.argv[0]) if sys.argv else ""
    except (AttributeError, OSError, TypeError, ValueError):  # an embedding program has its own idea of sys.argv
        return ""


_LAUNCHER = launched()


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
    """Neither Python's, nor an installed package's or program's, nor the guard's."""
    return not (is_guard(file) or is_stdlib(file) or is_installed(file) or (file == _LAUNCHER != ""))


def shown(file: str) -> str:
    """Relative to the current folder where it lies below it, else as it is."""
    try:
        here = os.getcwd() + os.sep
    except OSError:  # the folder was deleted
        return file
    return file[len(here) :] if file.startswith(here) and len(here) > 1 else file


def roots() -> tuple[str, str, str]:
    """(standard library, guard, installed program or ""), for the native side's own choice of a frame."""
    return _STDLIB.rstrip(os.sep), _GUARD.rstrip(os.sep), _LAUNCHER

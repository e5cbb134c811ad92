"""This Python, and whether CUDA_FORK_GUARD alone guards its processes."""

from __future__ import annotations

import os
import platform
import site
import sys

START_UP_LINE = "cuda_fork_guard.pth"


def interpreter() -> dict[str, object]:
    return {
        "version": platform.python_version(),
        "implementation": platform.python_implementation(),
        "executable": sys.executable,
        "compiler": platform.python_compiler(),
        "debug_build": hasattr(sys, "gettotalrefcount"),
        "free_threaded": "t" in getattr(sys, "abiflags", ""),
        "virtual_environment": sys.prefix != sys.base_prefix,
        "flags": [name for name in ("isolated", "no_site", "no_user_site", "dev_mode") if getattr(sys.flags, name)],
        "start_up_line": start_up_line(_site_folders(), site_is_on=not sys.flags.no_site),
    }


def _site_folders() -> list[str]:
    folders = list(site.getsitepackages())
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    return folders


def start_up_line(folders: list[str], *, site_is_on: bool) -> dict[str, object]:
    """Whether a process of this interpreter, started as this one was, looks at the variable.

    Only folders that `site` itself goes through count: a .pth file anywhere else, on PYTHONPATH for one, is not run.
    """
    found = next((path for path in (os.path.join(f, START_UP_LINE) for f in folders) if os.path.isfile(path)), None)
    reason = None
    if found is None:
        reason = f"{START_UP_LINE} is in none of this interpreter's site folders"
    elif not site_is_on:
        reason = "site is switched off (python -S)"
    return {"active": reason is None, "path": found, "reason": reason}

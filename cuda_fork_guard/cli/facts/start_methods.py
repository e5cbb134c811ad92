"""Start methods: what this platform has, and each library's default. Asking fixes none of them."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any


def start_methods(environ: Mapping[str, str] = os.environ) -> dict[str, object]:
    import multiprocessing

    return {
        "available": multiprocessing.get_all_start_methods(),
        "multiprocessing": _ask(multiprocessing),
        "torch.multiprocessing": _torch(multiprocessing),
        "multiprocess": _multiprocess(),
        "joblib": _joblib(environ),
    }


def _ask(module: Any) -> dict[str, object]:
    """`get_start_method()` alone would fix the default; the first of all methods is what it would become."""
    fixed = module.get_start_method(allow_none=True)
    return {"default": fixed or module.get_all_start_methods()[0], "fixed": fixed is not None}


def _torch(multiprocessing: Any) -> dict[str, object] | None:
    """It has no default of its own: its functions are multiprocessing's."""
    loaded = sys.modules.get("torch.multiprocessing")
    if loaded is not None:
        return _ask(loaded)
    return _ask(multiprocessing) if _installed("torch") else None


def _multiprocess() -> dict[str, object] | None:
    """A copy of multiprocessing (used by HF datasets) with a default of its own; small, so it is asked itself."""
    if not _installed("multiprocess"):
        return None
    try:
        return _ask(importlib.import_module("multiprocess"))
    except Exception as error:  # somebody else's package: whatever it raises is its answer
        return {"default": None, "fixed": None, "reason": f"{type(error).__name__}: {error}"}


def _joblib(environ: Mapping[str, str]) -> dict[str, object] | None:
    """loky, its default backend, starts fresh interpreters; the variable is for its multiprocessing backend."""
    if not _installed("joblib"):
        return None
    loaded = sys.modules.get("joblib.externals.loky.backend.context")
    loky = loaded.get_start_method() if loaded is not None else "loky"
    return {
        "version": package_version("joblib"),
        "default": loky,
        "fixed": loky != "loky",
        "multiprocessing_backend": environ.get("JOBLIB_START_METHOD") or None,
    }


def _installed(name: str) -> bool:
    if name in sys.modules:
        return sys.modules[name] is not None
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def package_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None

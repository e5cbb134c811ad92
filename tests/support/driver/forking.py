"""Checks: what forked children get."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from support.driver.api import device_count, in_child, load, query_codes, version


def _inits(library: Any, count: int) -> list[int]:
    return [library.cuInit(0) for _ in range(count)]


def of_a_fresh_process(path: str) -> dict[str, Any]:
    """The parent never called cuInit."""
    library = load(path)
    first = in_child(lambda: {"cuInit": _inits(library, 3), "grandchild": in_child(lambda: _inits(library, 2))})
    return {**first, "parent": library.cuInit(0)}


def of_a_process_that_called_cuinit(path: str) -> dict[str, Any]:
    """Before and after a cuInit of its own the child asks everything, and so does a child of the child."""
    library = load(path)
    parent = library.cuInit(0)

    def child() -> dict[str, Any]:
        return {
            "before": query_codes(library),
            "cuInit": _inits(library, 2),
            "after": query_codes(library),
            "version": version(library),
            "grandchild": in_child(lambda: [*_inits(library, 2), device_count(library)[0]]),
        }

    return {"parent": parent, "child": in_child(child), "parent afterwards": [library.cuInit(0), device_count(library)]}


def exec_from_a_child(path: str) -> Any:
    """A program started by a forked child of an initialized process has a driver of its own."""
    library = load(path)
    assert library.cuInit(0) == 0
    code = (
        "import ctypes, json, sys; c = ctypes.CDLL(sys.argv[1]); n = ctypes.c_int()\n"
        "print(json.dumps([c.cuInit(0), c.cuDeviceGetCount(ctypes.byref(n)), n.value]))"
    )
    return in_child(lambda: json.loads(subprocess.check_output([sys.executable, "-c", code, path], timeout=30)))

"""Evidence for tables: a process in which nothing was seen, with what a case is about changed."""

from __future__ import annotations

from typing import Any

from cuda_fork_guard.evidence import Evidence
from cuda_fork_guard.fork_site import ForkSite
from cuda_fork_guard.forkers import PLAIN

_NOTHING_SEEN: dict[str, Any] = {
    "pid": 4200,
    "policy": 1,
    "loader_lost": False,
    "libraries": 0,
    "code": -1,
    "devices": 0,
    "active": None,
    "path": "",
    "version": 0,
    "simulated": False,
    "known": 0,
    "cuinit_calls": 0,
    "hook_watching": "",
    "inherited": 0,
    "generation": 0,
    "forked_without_exec": False,
    "handles": (),
    "handles_error": "",
    "python_forks_seen": True,
    "handlers_error": 0,
    "ring": True,
    "tripwire": "idle",
    "tripwire_reason": "",
}

# A libcuda is loaded, and its cuDeviceGetCount answers 3.
LOADED: dict[str, Any] = {
    "libraries": 1,
    "code": 3,
    "path": "/usr/lib/libcuda.so.1",
    "version": 12040,
}
# ... and answers 0.
UP: dict[str, Any] = {**LOADED, "code": 0, "known": 2, "devices": 2, "active": ()}
UVM = ("5 -> /dev/nvidia-uvm",)


def evidence(**changes: Any) -> Evidence:
    return Evidence(**{**_NOTHING_SEEN, **changes})


def site(**changes: Any) -> ForkSite:
    plain: dict[str, Any] = {
        "file": "train.py",
        "line": 41,
        "function": "main",
        "forker": PLAIN,
        "exec": False,
        "quiet": False,
        "supervisor": False,
        "forkserver": False,
    }
    return ForkSite(**{**plain, **changes})

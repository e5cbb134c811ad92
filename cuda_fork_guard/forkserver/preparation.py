"""What a new process must know of the program, as ``multiprocessing.spawn`` has it, without fixing the start method."""

from __future__ import annotations

import multiprocessing
import os
import sys
from multiprocessing import process, spawn

from .. import status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def data(name: str) -> dict[str, Any]:
    """``spawn.get_preparation_data``; before CPython 3.14 it asks for the default start method, and so fixes it."""
    before = multiprocessing.get_start_method(allow_none=True)
    prepared: dict[str, Any] = spawn.get_preparation_data(name)
    if before is None:
        multiprocessing.set_start_method(None, force=True)
        prepared["start_method"] = None
    return prepared


def main_module() -> dict[str, str]:
    """How to run the main script's module level, for ``spawn.prepare``."""
    return {key: value for key, value in data("forkserver").items() if key.startswith("init_main_from_")}


def import_path() -> list[str]:
    """``sys.path`` with the folder in which the program was started spelled out."""
    return [entry or process.ORIGINAL_DIR or os.getcwd() for entry in sys.path]


def policy() -> str:
    """The policy in force here, which may come from an argument that no other process sees."""
    return status().policy

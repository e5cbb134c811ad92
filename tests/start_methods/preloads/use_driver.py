"""Loads the simulated driver; importing this alone wakes nothing."""

from __future__ import annotations

import ctypes
import os

from cuda_fork_guard.testing import driver_folder


def library() -> ctypes.CDLL:
    return ctypes.CDLL(os.path.join(driver_folder(), "libcuda.so.1"))


def wake() -> int:
    """What cuInit answers."""
    return int(library().cuInit(0))

"""A main script's module level, as 3.14's server runs it: imports the guard, then wakes CUDA."""

from __future__ import annotations

import use_driver

import cuda_fork_guard  # noqa: F401

use_driver.wake()

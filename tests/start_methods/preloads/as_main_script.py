"""A main script's module level, as 3.14's server runs it: imports the guard, then wakes CUDA."""

from __future__ import annotations

import cuda_fork_guard  # noqa: F401
import use_driver

use_driver.wake()

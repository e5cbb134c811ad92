"""Clean when imported: CUDA comes up at the server's next fork."""

from __future__ import annotations

import os

import use_driver

os.register_at_fork(before=use_driver.wake)

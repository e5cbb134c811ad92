"""Shared by all tests: each one that is about a process runs a child program (support.child), never this process."""

from __future__ import annotations

import contextlib
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

pytest_plugins = ["support.compiled"]

# A shell starts what it puts into the background with SIGINT ignored, and every program below inherits that.
with contextlib.suppress(ValueError):  # not the main thread
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)

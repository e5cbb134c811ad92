"""What "clean" means for a server: CUDA was never called, no device is open, and no Python thread is running."""

from __future__ import annotations

import sys
import threading

from .. import fork_site, paths, status
from ..errors import ForkServerNotCleanError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

_LEAVE_WITHIN = 0.5  # seconds that a thread which a preload started and let go may still take to end


def no_cuda(module: str | None) -> None:
    """:raises ForkServerNotCleanError: ``module`` (None: the start of Python) called ``cuInit`` or opened a device."""
    seen = status()
    if seen.driver not in ("absent", "loaded"):
        raise ForkServerNotCleanError(_woken(module, seen.driver, seen.origin))


def no_threads() -> None:
    """Python threads only: a child of fork gets their locks without them. Native ones are not judged: every numpy has a
    thread of OpenBLAS, every pyarrow one of jemalloc, and both survive a fork.

    :raises ForkServerNotCleanError: a thread of a preload's is running.
    """

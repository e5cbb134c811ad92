"""What an inherited child sets up after its fork, in ordinary context: the C handler has armed the tripwire by then."""

from __future__ import annotations

import gc
import sys

from . import fork_site

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, ModuleType


def set_up(native: ModuleType) -> str:
    """Returns what can't be seen in this child, or ""."""
    _watch_the_exit(native)
    _watch_collections(native)
    if "torch.cuda" not in sys.modules:
        return ""
    from .integrations import torch_refusal

    def refused(frame: FrameType | None) -> None:
        user = fork_site.user_frame(frame)
        where = "unknown"
        if user is not None:
            site = fork_site.read(frame)
            where = site.where()
        native.touch_by_refusal(f"{where}\t(torch.cuda._lazy_init, refused by torch)")

    return torch_refusal.observe(refused)


def _watch_the_exit(native: ModuleType) -> None:
    # Registered in the child, so it runs before whatever the program registered: destructors that call the driver while
    # the process ends are recorded, not reported.
    import atexit

    atexit.register(native.set_exiting)


def _watch_collections(native: ModuleType) -> None:
    if native.collection_started not in gc.callbacks:
        gc.callbacks.append(native.collection_started)

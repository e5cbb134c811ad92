"""What an inherited child that has torch sets up after its fork. The tripwire is armed by then, and collections are
watched: that is done without Python."""

from __future__ import annotations

import sys

from . import fork_site

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, ModuleType


def set_up(native: ModuleType) -> str:
    """Returns what can't be seen in this child, or ""."""
    if "torch.cuda" not in sys.modules:
        return ""
    from .integrations import torch_refusal

    def refused(frame: FrameType | None) -> None:
        user = fork_site.user_frame(frame)
        where = "unknown"
        if user is not None:
            site = fork_site.read(frame)
            where = site.where()
        native.touch_by_refusal(f"{where}  (torch.cuda._lazy_init, refused by torch)")

    return torch_refusal.observe(refused)

"""How this process was started, read off what is there: nothing is imported, and no start method is fixed."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType, ModuleType

# The function at the bottom of a worker's own stack tells who started it.
_MARKS = {
    "forkserver": ("forkserver", "_serve_one"),
    "spawn": ("spawn", "spawn_main"),
    "fork": ("popen_fork", "_launch"),
}
_PACKAGES = ("multiprocessing", "multiprocess", "billiard")


def start_method(modules: Mapping[str, ModuleType]) -> str | None:
    """``fork``, ``spawn`` or ``forkserver`` for a worker of multiprocessing (or of a copy of it); None for any other
    process, and where it can't be told."""
    if not any(package in modules for package in _PACKAGES):
        return None
    frame = _main_frame(modules)
    while frame is not None:
        name = frame.f_globals.get("__name__")
        for method, (module, function) in _MARKS.items():
            if frame.f_code.co_name == function and name in [f"{package}.{module}" for package in _PACKAGES]:
                return method
        frame = frame.f_back
    return None


def _main_frame(modules: Mapping[str, ModuleType]) -> FrameType | None:
    """The main thread's innermost frame: a worker may be verified from any of its threads."""
    threading = modules.get("threading")
    main = threading.main_thread().ident if threading is not None else None
    frames = sys._current_frames()
    return frames.get(main) if main is not None else sys._getframe()

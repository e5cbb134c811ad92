"""The chain of imports that led to a call, with the import machinery folded away."""

from __future__ import annotations

import os

from . import frames as frames_
from . import paths
from .frames import Frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_LONGEST = 12  # steps; of a longer chain the middle is left out
_MACHINERY = os.path.join(os.path.dirname(os.__file__), "importlib") + os.sep


def read(frames: Sequence[Frame], called: str) -> tuple[str, ...]:
    """``("train.py:3", "pkg/__init__.py:10", "pkg/ops.py:44", "torch.cuda.is_available")``: the lines that imported, the
    lines of the last module down to its call, and what that called. Empty if no import was under way.

    :param frames: outermost first.
    :param called: what the innermost frame called, for a module that has no other Python function in between.
    """
    known = [frame for frame in frames if frame.file]
    folded = [_is_machinery(frame) for frame in known]
    if True not in folded:
        return ()
    steps = [
        frame
        for frame, own, inner in zip(known, folded, folded[1:], strict=False)
        if inner and not own and not paths.is_guard(frame.file)
    ]
    last = len(folded) - 1 - folded[::-1].index(True)
    inside, callee = _last_module(known[last + 1 :])
    lines = [_step(frame) for frame in steps + inside]
    end = frames_.dotted(callee) if callee is not None else called
    return (*_shortened([line for at, line in enumerate(lines) if not at or line != lines[at - 1]]), end)


def _is_machinery(frame: Frame) -> bool:
    return frame.file.startswith(("<frozen importlib", "<frozen zipimport", _MACHINERY))


def _last_module(frames: list[Frame]) -> tuple[list[Frame], Frame | None]:
    """The frames of the module that was being imported last, and the first one that is no more of it."""
    # A loader of its own kind (pytest's) stands between the machinery and the module.
    start = next((at for at, frame in enumerate(frames) if frame.function == "<module>"), 0)
    frames = frames[start:]
    if not frames:
        return [], None
    owner = _owner(frames[0].file)
    end = next((at for at, frame in enumerate(frames) if _owner(frame.file) != owner), len(frames))
    return frames[:end], frames[end] if end < len(frames) else None


def _owner(file: str) -> str:
    """The installed package that a file belongs to; "" for everything of the user's own."""
    if paths.is_stdlib(file):
        return "<stdlib>"
    return paths.in_package_folder(file).split(os.sep)[0] if paths.is_installed(file) else ""


def _step(frame: Frame) -> str:
    if paths.is_installed(frame.file):
        return f"{paths.in_package_folder(frame.file)}:{frame.line}"
    return frames_.where(frame)


def _shortened(lines: list[str]) -> list[str]:
    if len(lines) <= _LONGEST:
        return lines
    half = _LONGEST // 2
    return [*lines[:half], f"({len(lines) - 2 * half} more)", *lines[-half:]]

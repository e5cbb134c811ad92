"""Python frames as values: which one is the user's line, and how a place is written."""

from __future__ import annotations

import os
import sys

from . import paths
from .values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_CELL_FILE = "<ipython-input-"
_LONGEST_SOURCE = 60
_DEPTH_OF_A_NAME = 6  # components of a dotted name


class Frame(Value):
    """One line of a stack. Where frames were left out one stands for them, with neither file nor line, and says so in
    ``function``."""

    __slots__ = ("file", "line", "function")
    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return place(self) if self.file else self.function


def gap(count: int) -> Frame:
    """What stands for frames that were left out; a negative count: nobody knows how many."""
    text = f"({count} frames left out)" if count > 0 else "(frames left out)"
    return Frame(file="", line=0, function=text)


def user_frame(frames: Sequence[Frame]) -> Frame | None:
    """The innermost frame outside the standard library, installed packages and the guard; if there is none, the
    innermost outside the standard library and the guard; else the innermost outside the guard. ``frames`` begin with the
    outermost."""
    installed = standard = None
    for frame in reversed(frames):
        if not frame.file or paths.is_guard(frame.file):
            continue
        if paths.is_user(frame.file):
            return frame
        if paths.is_stdlib(frame.file):
            standard = standard or frame
        else:
            installed = installed or frame
    return installed or standard


def cell(file: str) -> str:
    """``In[3]`` if the file is a notebook's cell, else nothing. IPython's own table is asked: the names that Jupyter gives
    its files tell no number."""
    number: object = _cell_numbers().get(file)
    if number is None and file.startswith(_CELL_FILE):
        number = file[len(_CELL_FILE) :].partition("-")[0]
    return "" if number is None else f"In[{number}]"


def _cell_numbers() -> dict[str, int]:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    numbers = getattr(getattr(shell, "compile", None), "_filename_map", None)
    return numbers if isinstance(numbers, dict) else {}


def cells() -> tuple[str, ...]:
    """File, name, file, name, … of a notebook's cells, newest first: for the native side, which can't ask IPython."""
    return tuple(text for file, number in reversed(_cell_numbers().items()) for text in (file, f"In[{number}]"))


def where(frame: Frame) -> str:
    """``train.py:12``, or ``cell In[3], line 2``."""
    in_cell = cell(frame.file)
    return f"cell {in_cell}, line {frame.line}" if in_cell else f"{paths.shown(frame.file)}:{frame.line}"


def place(frame: Frame) -> str:
    """``train.py:12 in main``, or ``cell In[3], line 2``."""
    # IPython calls a cell's own level "<cell line: 2>" or "<module>".
    if frame.function.startswith("<") and cell(frame.file):
        return where(frame)
    return f"{where(frame)} in {frame.function}"


def source(frame: Frame) -> str:
    """The line as it is written in the file, if it can be read and is short enough to be quoted."""
    try:
        import linecache  # the first time it is read itself, for which a descriptor may be missing

        text = linecache.getline(frame.file, frame.line).strip()
    except Exception:  # a module's own loader is asked for its source: anything may come
        return ""
    text = text.removeprefix("return ")
    return text if len(text) <= _LONGEST_SOURCE and text.isprintable() else ""


def dotted(frame: Frame) -> str:
    """``torch.cuda.is_available``, read off file and function."""
    name = _module_name(frame.file)
    return frame.function if not name else name if frame.function == "<module>" else f"{name}.{frame.function}"


def _module_name(file: str) -> str:
    inside = paths.in_package_folder(file)
    if file.startswith("<") or not inside.endswith(".py"):
        return ""
    parts = inside[: -len(".py")].split(os.sep)
    if os.path.isabs(inside) or len(parts) > _DEPTH_OF_A_NAME:
        return parts[-1]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def from_raw(rows: Iterable[tuple[str, int, str]], gap_at: int, left_out: int) -> tuple[Frame, ...]:
    """Outermost first, as a traceback shows them. The native side has the innermost first."""
    found = [Frame(file=file, line=line, function=function) for file, line, function in rows]
    if gap_at:
        found.insert(gap_at, gap(left_out))
    return tuple(reversed(found))

"""Real frames with chosen modules, functions and files: stacks as packages leave them, without the packages."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from types import FrameType, FunctionType
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")
_SITE = "/opt/venv/lib/python3.11/site-packages/"


class Call(NamedTuple):
    """A function of a module: in site-packages, unless it is told to be the user's."""

    module: str
    function: str
    file: str | None = None

    def path(self) -> str:
        return self.file if self.file is not None else f"{_SITE}{self.module.replace('.', '/')}.py"


def user(function: str = "main", file: str = "/home/me/train.py", module: str = "__main__") -> Call:
    return Call(module, function, file)


def at_the_fork(calls: list[Call], look: Callable[[FrameType], T]) -> T:
    """Calls the functions inside one another, the outermost first, on a thread of its own (so nothing of the test's is
    below them), and gives the innermost one's frame to `look` while it runs."""

    def innermost() -> T:
        return look(sys._getframe(1))

    inside: Callable[[], T] = innermost
    for call in reversed(calls):
        inside = functools.partial(_function(call), inside)
    result: list[T] = []
    thread = threading.Thread(target=_keep, args=(result, inside))
    thread.start()
    thread.join()
    assert result, "the look failed: see its traceback"
    return result[0]


def _function(call: Call) -> FunctionType:
    found: dict[str, Any] = {"__name__": call.module}
    exec(compile("def call(inside):\n    return inside()\n", call.path(), "exec"), found)
    code = found["call"].__code__.replace(co_name=call.function)
    return FunctionType(code, found)


# Part of the guard as far as the guard's rules on files go: no frame of the test's may pass for the user's.
_keep_source = "def keep(result, inside):\n    result.append(inside())\n"
_keep_globals: dict[str, Any] = {"__name__": "threading"}
exec(compile(_keep_source, threading.__file__, "exec"), _keep_globals)
_keep = _keep_globals["keep"]

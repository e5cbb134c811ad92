"""Where a fork is being made, read off the Python stack of the forking thread."""

from __future__ import annotations

import sys

from . import forkers, frames, known_frames, paths
from .forkers import Forker
from .values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

_DEEPEST = 400  # frames looked at: the forker is near the fork, the user's line not far behind


class ForkSite(Value):
    """One fork about to be made."""

    __slots__ = ("file", "line", "function", "forker", "exec", "quiet", "supervisor", "forkserver")
    file: str
    line: int
    function: str  # without a file: the library's function that tells most
    forker: Forker
    exec: bool  # recognised as fork + exec
    quiet: bool  # one of Inductor's compile workers
    supervisor: bool  # in a pool's own thread: an exception reaches nobody
    forkserver: bool  # in a forkserver process: likewise

    def where(self) -> str:
        """``train.py:41 in main``"""
        if self.file:
            return frames.place(frames.Frame(file=self.file, line=self.line, function=self.function))
        return f"unknown: no line of the program, in {self.function}" if self.function else "unknown: no Python frame"


def _module_of(frame: FrameType) -> str:
    name = frame.f_globals.get("__name__")
    return name if isinstance(name, str) else ""


def user_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame outside the standard library, installed packages and the guard; if there is none, the
    innermost outside the standard library and the guard."""
    fallback = None
    for _ in range(_DEEPEST):
        if frame is None:
            break
        file = frame.f_code.co_filename
        if paths.is_user(file):
            return frame
        if fallback is None and not (paths.is_stdlib(file) or paths.is_guard(file)):
            fallback = frame
        frame = frame.f_back
    return fallback


def read(frame: FrameType | None) -> ForkSite:
    """The site of a fork called by ``frame``."""
    user = user_frame(frame)
    modules: list[tuple[str, str]] = []
    near: list[str] = []  # modules between the fork and the user's line: the forker is among them
    reached_user = False
    while frame is not None and len(modules) < _DEEPEST:
        module = _module_of(frame)
        if (module, frame.f_code.co_name) in known_frames.BIRTHS:
            break
        modules.append((module, frame.f_code.co_name))
        reached_user = reached_user or frame is user
        if not reached_user:
            near.append(module)
        frame = frame.f_back
    while modules and modules[0][0] in known_frames.WRAPPERS:
        del modules[0]
    forkserver = any(entry in known_frames.FORKSERVERS for entry in modules)
    if forkserver and user is not None and user.f_code.co_filename == "<string>":
        user = None  # the line that multiprocessing starts its server with
    # A frame below the fork that belongs to a package outside the user's code can itself be the fallback "user" line.
    if user is not None and not paths.is_user(user.f_code.co_filename):
        near = [module for module, _ in modules]
    return ForkSite(
        file=user.f_code.co_filename if user else "",
        line=(user.f_lineno or 0) if user else 0,
        function=user.f_code.co_name if user else _telling_function(modules),
        forker=forkers.FORKSERVER if forkserver else _forker(modules, near),
        exec=any(entry in known_frames.FORK_EXEC for entry in modules[:3]),
        quiet=any(module.startswith(known_frames.QUIET_PREFIX) for module in near),
        supervisor=any(entry in known_frames.POOL_SUPERVISORS for entry in modules),
        forkserver=forkserver,
    )


def _telling_function(modules: list[tuple[str, str]]) -> str:
    """Of a stack without a line of the program: what a pool's thread or a server is busy with, else the innermost."""
    busy = known_frames.POOL_SUPERVISORS | known_frames.FORKSERVERS
    telling = [entry for entry in modules if entry in busy] or modules[:1]
    return ".".join(telling[0]) if telling else ""


def _forker(modules: list[tuple[str, str]], near: list[str]) -> Forker:
    innermost = modules[0][0] if modules else ""
    for pattern, forker in forkers.DIRECT:
        if forkers.matches(pattern, innermost):
            return forker
    best, rank = forkers.PLAIN, 0
    for module in near:
        for pattern, below, weight, forker in forkers.THROUGH:
            if weight >= rank and forkers.matches(pattern, module) and _seen(below, near):
                best, rank = forker, weight
        if rank == 9:
            break
    return best


def _seen(pattern: str, modules: list[str]) -> bool:
    return not pattern or any(forkers.matches(pattern, module) for module in modules)


def caller(depth: int) -> FrameType | None:
    """The frame ``depth`` calls above the caller of this function."""
    try:
        return sys._getframe(depth + 1)
    except ValueError:
        return None

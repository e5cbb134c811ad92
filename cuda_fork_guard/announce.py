"""Says what was decided before a fork: raises the refusal, warns, or tells where nobody could catch either."""

from __future__ import annotations

import os
import sys

from . import decision, fork_site, paths, report
from .errors import UnsafeForkError, UnsafeForkWarning

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from .decision import Decision
    from .fork_site import ForkSite

_listener: Callable[[str], None] | None = None
_trouble = ""


def announce(chosen: Decision, site: ForkSite, woken: str, frame: FrameType | None, inherited: bool) -> None:
    """The only exceptions that leave it are a refusal and what the program's own warning machinery raises.

    :raises UnsafeForkError: the decision is to refuse.
    """
    if chosen.action == decision.REFUSE:
        refusal = report.error_text(site, woken, inherited)
        _hear(refusal)
        raise UnsafeForkError(refusal)
    if chosen.action not in (decision.WARNING, decision.REPORT):
        return
    text = report.warning_text(site, woken, inherited)
    _hear(text)
    if chosen.action == decision.WARNING:
        warn(text, UnsafeForkWarning, fork_site.user_frame(frame))
        return
    try:
        warn(text, UnsafeForkWarning, fork_site.user_frame(frame))
    except Exception:
        # "error" as a filter, or a showwarning that raises: here nobody could catch it, but the user is told all the same.
        _tell(f"cuda_fork_guard[{os.getpid()}]: {text}\n")


def set_listener(listener: Callable[[str], None] | None) -> None:
    """Who counts unsafe forks (the pytest plugin): a program may catch the error or filter the warning."""
    global _listener
    _listener = listener


def trouble() -> str:
    """What could not be said, for ``status``; "" if nothing."""
    return _trouble


def _hear(text: str) -> None:
    if _listener is not None:
        _listener(text)


def warn(text: str, category: type[Warning], frame: FrameType | None) -> None:
    """A warning on the line of ``frame``, through the standard filters."""
    import warnings

    if frame is None:
        warnings.warn_explicit(text, category, "<unknown>", 0)
        return
    warnings.warn_explicit(
        text,
        category,
        frame.f_code.co_filename,
        frame.f_lineno or 0,
        module=frame.f_globals.get("__name__") or "<unknown>",
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )


def importer() -> FrameType | None:
    """The innermost frame outside the guard and the import machinery: whoever imports or installs it."""
    frame = fork_site.caller(0)
    while frame is not None and (
        paths.is_guard(frame.f_code.co_filename) or frame.f_code.co_filename.startswith("<frozen importlib")
    ):
        frame = frame.f_back
    return frame


def _tell(text: str) -> None:
    global _trouble
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except Exception:
        _trouble = "a report could not be written to stderr"

"""The words of messages about forks. The touch report's own are in csrc/core/touch.cpp: no Python can be asked there."""

from __future__ import annotations

from .fork_site import ForkSite


def forked_line(site: ForkSite, pid: int) -> str:
    """``train.py:41 in main  (torch DataLoader, from pid 4200)``"""
    return f"{site.where()}  ({site.forker.name}, from pid {pid})"


def one_line(text: str) -> bytes:
    """Text for the record, whose lines and fields are made of control characters: a file name, a thread's name or the
    reason of ``allow_fork`` may hold any, and bytes that are no UTF-8."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return text.encode()


def _body(site: ForkSite, woken: str) -> str:
    return f"\n  forked:  {site.where()}  ({site.forker.name})\n  woken:   {woken}\n  do:      {site.forker.advice}"


def warning_text(site: ForkSite, woken: str, inherited: bool) -> str:
    """Without the forking process's pid or time: the same site and origin give the same text, so that the standard
    filters show it once."""
    return f"[CFG101] fork {_while(inherited)}: the child must not use CUDA, it can't work there." + _body(site, woken)


def error_text(site: ForkSite, woken: str, inherited: bool) -> str:
    return (
        f"[CFG101] fork refused {_while(inherited)}: in the child CUDA could not work (policy 'block')."
        + _body(site, woken)
        + "\n  or:      with cuda_fork_guard.allow_fork('why'): … if this child never uses CUDA"
    )


def _while(inherited: bool) -> str:
    return "in a process with inherited CUDA" if inherited else "while CUDA is initialized"

"""What the server, and each worker, answers on a pipe of its own before anything of the user's runs.

Lines ``loading NAME`` while the server preloads, then ``clean PID`` or the name of an error class with its text below.
The class travels as a name out of a fixed table: every error of the guard is whole in its one string.
"""

from __future__ import annotations

import os

from cuda_fork_guard import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_CHUNK = 65536
_LOADING = "loading "
_CLEAN = "clean "
# Ends a refusal: its end of file may be long in coming, if a thread of the reader forked while it held the other end.
_END = "\0"


def loading(descriptor: int, module: str) -> None:
    """Said before each preload, so that a crash in it has a name."""
    _send(descriptor, f"{_LOADING}{module}\n")


def clean(descriptor: int) -> None:
    """The answer of a process that may go on. The last one: the descriptor is closed."""
    _send(descriptor, f"{_CLEAN}{os.getpid()}\n")
    os.close(descriptor)


def refuse(descriptor: int, error: errors.CudaForkGuardError) -> None:
    """The answer that raises this error in the process that reads it. The last one: the descriptor is closed."""
    _send(descriptor, f"{type(error).__name__}\n{error}{_END}")
    os.close(descriptor)


def read(descriptor: int, *, crashed: Callable[[str | None], Exception]) -> int:
    """The pid of a process that is clean.

    :raises CudaForkGuardError: the refusal, with its type; or what ``crashed`` makes of the module that was being
        loaded when the process ended without an answer.
    """
    module = None
    pending = b""
    while chunk := os.read(descriptor, _CHUNK):
        pending += chunk
        while pending.startswith(_LOADING.encode()) and b"\n" in pending:
            line, _, pending = pending.partition(b"\n")
            module = line[len(_LOADING) :].decode("utf-8", "replace")
        answer = pending.decode("utf-8", "replace")
        if answer.startswith(_CLEAN) and answer.endswith("\n"):
            return int(answer[len(_CLEAN) :])
        if answer.endswith(_END):
            name, _, text = answer[: -len(_END)].partition("\n")
            raise _kind(name)(text)
    raise crashed(module)


def _kind(name: str) -> type[errors.CudaForkGuardError]:
    kind = getattr(errors, name, None)
    return kind if isinstance(kind, type) and issubclass(kind, errors.CudaForkGuardError) else errors.StartMethodError


def _send(descriptor: int, text: str) -> None:
    answer = text.encode("utf-8", "backslashreplace")
    try:
        while answer:
            answer = answer[os.write(descriptor, answer) :]
    except BrokenPipeError:
        pass  # whoever asked is gone

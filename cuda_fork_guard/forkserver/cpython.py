"""The private parts of CPython's multiprocessing under the proved forkserver, each named here and nowhere else.

They have been the same from 3.10 to 3.14 (3.14 added ``authkey_r``); tests/start_methods holds them on each.
"""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing import context, forkserver, process, spawn, util

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multiprocessing.context import BaseContext
    from typing import Any

_context: Any = context
_forkserver: Any = forkserver
_process: Any = process
_spawn: Any = spawn
_util: Any = util


def default_context() -> BaseContext | None:
    """The process default, None as long as nothing has fixed it."""
    found: BaseContext | None = _context._default_context._actual_context
    return found


def set_default_context(chosen: BaseContext) -> None:
    """``multiprocessing.set_start_method`` takes the name of one of CPython's own contexts only."""
    _context._default_context._actual_context = chosen


def set_spawning_popen(popen: object) -> None:
    """While it is set, locks, queues and descriptors may be pickled for the process that it starts."""
    _context.set_spawning_popen(popen)


def wants_authkey() -> bool:
    """From 3.14 on whoever asks the server for a process must know a key."""
    return "authkey_r" in (_forkserver.main.__kwdefaults__ or {})


def serve(listener_fd: int, alive_r: int, options: dict[str, int]) -> None:
    """CPython's own server loop, with nothing left to preload."""
    _forkserver.main(listener_fd, alive_r, [], **options)


def worker_alive_fd() -> int:
    """In a worker: its copy of the pipe whose last copy keeps the server alive."""
    descriptor: int = _forkserver._forkserver._forkserver_alive_fd
    return descriptor


def read_signed(descriptor: int) -> int:
    """One number of the server's: first a worker's pid, then its exit code."""
    number: int = _forkserver.read_signed(descriptor)
    return number


def run_main_module(prepared: dict[str, str]) -> None:
    """The main script's module level, as ``__mp_main__``: what each worker would otherwise run by itself."""
    current = _process.current_process()
    current._inheriting = True
    try:
        _spawn.prepare(prepared)
    finally:
        del current._inheriting


def preparation_data(name: str) -> dict[str, Any]:
    """What a worker must know of the program. Before 3.14 CPython asks for the default method here, and so fixes it."""
    unfixed = default_context() is None
    prepared: dict[str, Any] = _spawn.get_preparation_data(name)
    if unfixed:
        multiprocessing.set_start_method(None, force=True)
    return prepared


def original_folder() -> str:
    """Where the program was started: what '' in its ``sys.path`` means."""
    return _process.ORIGINAL_DIR or os.getcwd()


def spawn_python(command: str, arguments: list[str], pass_on: list[int]) -> int:
    """The pid of a fresh interpreter with this one's flags, and with these descriptors alone."""
    executable = _spawn.get_executable()
    line = [executable, *_util._args_from_interpreter_flags(), "-c", command, *arguments]
    pid: int = _util.spawnv_passfds(executable, line, pass_on)
    return pid

"""The program's side of the proved forkserver: launch it, hear its verdict, connect to it.

Derived from CPython's ``ForkServer`` for its protocol. Launching is done here, because CPython's way of preloading
swallows a failed import, ignored the program's ``sys.path`` up to 3.13.0, and can't answer before the server serves.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from multiprocessing import forkserver, resource_tracker

from cuda_fork_guard import status
from cuda_fork_guard.errors import StartMethodError

from . import cpython, notice, verdict

_AUTHKEY_LENGTH = 32  # CPython's own: one write carries it

_COMMAND = (
    "import sys; sys.path[:] = {sys_path!r}; sys.argv[:] = sys.argv[1:]; "
    "from cuda_fork_guard.forkserver.serve import main; main({arguments!r}, {options!r})"
)


class ServerGone(StartMethodError):
    """The server ended with a request in its hands. Raised to the user only if it happens twice running."""


class ProvedServer(forkserver.ForkServer):
    """The server as one process sees it: launched by it, or borrowed from the process that launched it."""

    # CPython's own, which connect_to_new_process reads.
    _forkserver_address: bytes | None
    _forkserver_alive_fd: int | None
    _forkserver_pid: int | None
    _lock: threading.Lock

    def __init__(self) -> None:
        super().__init__()
        self.preload: tuple[str, ...] = ()
        self.process = os.getpid()
        self._borrowed = False
        self._forkserver_authkey: bytes | None = None  # CPython has one from 3.14 on
        self._start_lock = threading.RLock()

    def require(self, preload: tuple[str, ...]) -> None:
        """Nothing if a server with these modules runs or could be launched now; no modules: any server will do.

        :raises StartMethodError: the server runs with others.
        """
        with self._start_lock:
            if preload and set(preload) != set(self.preload) and self.running():
                raise StartMethodError(
                    f"[CFG301] the forkserver of this program already runs with preload={self.preload!r}: it can't "
                    f"load preload={preload!r} any more. Name all modules in the first get_context(preload=…), or call "
                    "get_context() without preload to use the server as it is"
                )

    def running(self, *, may_raise: bool = True) -> bool:
        """Whether there is a server to connect to; a dead one is reaped, and said."""
        if self._borrowed:
            return True
        pid = self._forkserver_pid
        if pid is None:
            return False
        try:
            found, status = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:  # reaped by a waitpid(-1) of the program's own
            found, status = pid, None
        if found == 0:
            return True
        self._forget()
        notice.server_died(pid, status, may_raise=may_raise)
        return False

    def prepare(self, preload: tuple[str, ...]) -> None:
        """Have a server that runs, is proved, and has loaded ``preload``."""
        with self._start_lock:
            self.require(preload)
            if not self.running():
                self.preload = preload
            self.ensure_running()

    def connect(self, fds: list[int], preload: tuple[str, ...]) -> tuple[int, int]:
        """(status pipe, data pipe) of a new process."""
        with self._start_lock:
            self.prepare(preload)
            try:
                status_r, data_w = self.connect_to_new_process(fds)
            except ConnectionError:
                raise self.gone() from None
            return status_r, data_w

    def ensure_running(self) -> None:
        """Called by ``connect_to_new_process`` too. Returns when the server is proved and serves."""
        with self._lock:
            resource_tracker.ensure_running()
            if not self.running():
                self._launch()

    def gone(self) -> ServerGone:
        """After a request that was taken and never answered."""
        with self._start_lock:
            pid = self._forkserver_pid
            self._forget()
        ended = "it belonged to another process"
        if pid is not None:
            status = _end(pid)
            ended = notice.ending(status)
            notice.server_died(pid, status)
        return ServerGone(
            f"[CFG301] the forkserver was gone before it had made this worker ({ended}): nothing of its target ran. "
            "Start it again: another server is launched with the same preload"
        )

    def lent(self) -> tuple[bytes | None, bytes | None, tuple[str, ...]]:
        """What a worker needs to :func:`borrow` it."""
        return self._forkserver_address, self._forkserver_authkey, self.preload

    def _launch(self) -> None:
        options: dict[str, int] = {}
        authkey = None
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("")  # Linux: a free name of no file, which vanishes with the server
            listener.listen()
            address = listener.getsockname()
            # Every process that may ask for workers holds the write end: when all are gone the server ends.
            alive_r, alive_w = os.pipe()
            verdict_r, verdict_w = os.pipe()
            pass_on = [listener.fileno(), alive_r, verdict_w]
            try:
                if cpython.wants_authkey():
                    authkey = os.urandom(_AUTHKEY_LENGTH)
                    options["authkey_r"] = _pipe_holding(authkey)
                    pass_on.append(options["authkey_r"])
                arguments = {
                    "listener_fd": listener.fileno(),
                    "alive_r": alive_r,
                    "verdict_w": verdict_w,
                    "preload": self.preload,
                    "main": _main_module() if "__main__" in self.preload else {},
                    "policy": status().policy,  # which may come from an argument that no other process sees
                }
                command = _COMMAND.format(sys_path=_import_path(), arguments=arguments, options=options)
                pid = cpython.spawn_python(command, [str(argument) for argument in sys.argv], pass_on)
            except BaseException:
                os.close(alive_w)
                os.close(verdict_r)
                raise
            finally:
                for descriptor in pass_on[1:]:  # the first is the listener's own
                    os.close(descriptor)
        try:
            verdict.read(verdict_r, crashed=lambda module: StartMethodError(_crash(module, _end(pid))))
        except BaseException:
            os.close(alive_w)
            _end(pid)
            raise
        finally:
            os.close(verdict_r)
        self._forkserver_address = address
        self._forkserver_authkey = authkey
        self._forkserver_alive_fd = alive_w
        self._forkserver_pid = pid

    def _forget(self) -> None:
        if self._forkserver_alive_fd is not None:
            os.close(self._forkserver_alive_fd)
        self._forkserver_address = None
        self._forkserver_authkey = None
        self._forkserver_alive_fd = None
        self._forkserver_pid = None
        self._borrowed = False


_server = ProvedServer()


def current() -> ProvedServer:
    """This process's server. After an ``os.fork`` by hand it is still the parent's, and only borrowed."""
    if _server.process != os.getpid():
        address, authkey, preload = _server.lent()
        borrow(address, authkey, _server._forkserver_alive_fd, preload)
    return _server


def borrow(address: bytes | None, authkey: bytes | None, alive_fd: int | None, preload: tuple[str, ...]) -> None:
    """Use a server that another process launched (``address`` is None: there was none yet)."""
    global _server
    _server = ProvedServer()
    if address is not None:
        _server._forkserver_address = address
        _server._forkserver_authkey = authkey
        _server._forkserver_alive_fd = alive_fd
        _server.preload = preload
        _server._borrowed = True


def _import_path() -> list[str]:
    return [entry or cpython.original_folder() for entry in sys.path]


def _main_module() -> dict[str, str]:
    prepared = cpython.preparation_data("forkserver")
    return {key: value for key, value in prepared.items() if key.startswith("init_main_from_")}


def _pipe_holding(content: bytes) -> int:
    reader, writer = os.pipe()
    os.write(writer, content)
    os.close(writer)
    return reader


def _end(pid: int) -> int | None:
    """Kill and reap; the wait status, which for a process that was already ending is how it ended."""
    try:
        os.kill(pid, signal.SIGKILL)
        return os.waitpid(pid, 0)[1]
    except (ProcessLookupError, ChildProcessError):
        return None


def _crash(module: str | None, status: int | None) -> str:
    doing = f"while it imported {module!r}" if module else "before it imported anything"
    return (
        f"[CFG301] the forkserver ended {doing} ({notice.ending(status)}): no worker was started. "
        f"Try `python -c 'import {module or 'cuda_fork_guard'}'`: what can't be imported there can't be preloaded"
    )

"""The context that the user holds, its Process, and the Popen that starts a worker and hears its verdict."""

from __future__ import annotations

import io
import os
import threading
from multiprocessing import connection, context, popen_forkserver, reduction, util

from cuda_fork_guard.errors import StartMethodError

from . import cpython, notice, server, verdict
from .worker import StartCheck

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from multiprocessing.process import BaseProcess
    from typing import Any

_UNKNOWN_EXIT_CODE = 255  # CPython's own answer where the server that would know is gone
_REAPED_WITHIN = 1.0  # seconds that a living server may take from a worker's end to its exit code


class Popen(popen_forkserver.Popen):
    """Starts one worker, and returns when it is verified; its refusal is raised here, in whoever called ``start()``."""

    _fds: list[int]
    returncode: int | None
    sentinel: int

    def __init__(self, process_obj: BaseProcess, preload: tuple[str, ...]) -> None:
        self._preload = preload
        # Every start() asks after all workers, in whichever thread: the exit code can be read from the pipe once only.
        self._collecting = threading.Lock()
        super().__init__(process_obj)

    def _launch(self, process_obj: BaseProcess) -> None:
        try:
            self._try(process_obj)
        except server.ServerGone:
            # Killed with the request in its hands, or just before. No worker was verified: nothing can run twice.
            self._fds = []
            self._try(process_obj)

    def _try(self, process_obj: BaseProcess) -> None:
        verdict_r, verdict_w = os.pipe()
        try:
            try:
                self._status, data_w, payload = self._request(process_obj, verdict_w)
            finally:
                os.close(verdict_w)
            # A copy of the data pipe's write end, open as long as this process lives: the worker's parent sentinel.
            parent_w = os.dup(data_w)
            self.finalizer = util.Finalize(self, _close_all, (parent_w, self._status))
            _write(data_w, payload)
            self.pid = verdict.read(verdict_r, crashed=self._crashed)
            self.sentinel = self._watch(parent_w)
        except BaseException:
            self.close()
            raise
        finally:
            os.close(verdict_r)

    def _request(self, process_obj: BaseProcess, verdict_w: int) -> tuple[int, int, bytes]:
        source = server.current()
        source.prepare(self._preload)
        prepared = cpython.preparation_data(process_obj.name)
        del prepared["start_method"]  # the worker's default is its own context: see worker.py
        buffer = io.BytesIO()
        cpython.set_spawning_popen(self)
        try:
            prepared["cuda_fork_guard"] = StartCheck(
                descriptor=reduction.DupFd(verdict_w),
                lent=source.lent(),
                refuse=not notice.in_pool_supervisor(),
            )
            reduction.dump(prepared, buffer)
            reduction.dump(process_obj, buffer)
        finally:
            cpython.set_spawning_popen(None)
        status_r, data_w = source.connect(self._fds, self._preload)
        return status_r, data_w, buffer.getvalue()

    def _crashed(self, _module: str | None) -> StartMethodError:
        try:
            pid = cpython.read_signed(self._status)
        except (EOFError, OSError):
            return server.current().gone()
        return StartMethodError(
            f"[CFG301] the worker (pid {pid}) was killed before it was verified, and nothing of its target ran"
        )

    def _watch(self, parent_w: int) -> int:
        """A descriptor that is ready when the worker has ended: its own where the kernel has such (Linux 5.3), so that
        the end of the server is not taken for the end of its workers."""
        try:
            cpython.read_signed(self._status)  # its pid, which the verdict has named already
            own = os.pidfd_open(self.pid)
        except (EOFError, OSError):
            return self._status
        assert self.finalizer is not None
        self.finalizer.cancel()
        self.finalizer = util.Finalize(self, _close_all, (parent_w, self._status, own))
        return own

    def poll(self, flag: int = os.WNOHANG) -> int | None:
        if self.returncode is None:
            blocking = flag != os.WNOHANG
            if not connection.wait([self.sentinel], None if blocking else 0):
                return None
            if not connection.wait([self._status], None if blocking else _REAPED_WITHIN):
                return None
            with self._collecting:
                if self.returncode is None:
                    self.returncode = self._collect()
        return self.returncode

    def _collect(self) -> int:
        try:
            return cpython.read_signed(self._status)
        except (EOFError, OSError):
            server.current().running(may_raise=False)  # says what became of it
            return _UNKNOWN_EXIT_CODE

    def close(self) -> None:
        # Also after a start that failed, where CPython would leave it to the garbage collector.
        if self.finalizer is not None:
            self.finalizer()


class Process(context.ForkServerProcess):
    """A worker of the proved forkserver. Each context has a subclass that knows its preload."""

    _guard_preload: tuple[str, ...] = ()
    # With a name here multiprocessing would make CPython's own context of that name the default in each worker.
    _start_method = None  # type: ignore[assignment]

    @classmethod
    def _Popen(cls, process_obj: BaseProcess) -> Popen:
        # As the default context's, cls is one of ours and process_obj a plain multiprocessing.Process.
        return Popen(process_obj, cls._guard_preload)

    def __reduce_ex__(self, protocol: Any) -> Any:
        if "_guard_preload" in type(self).__dict__:  # one made below: it has no name to be pickled by
            return _new_process, (), self.__dict__
        return super().__reduce_ex__(protocol)


def _new_process() -> Process:
    """What a pickled one is rebuilt on, in the worker."""
    return Process.__new__(Process)


class ProvedForkServerContext(context.ForkServerContext):
    """CPython's forkserver context, with a server that is proved free of CUDA before it makes its first worker."""

    def __init__(self, preload: tuple[str, ...]) -> None:
        self.preload = preload
        # A class, as in CPython's own contexts: programs derive from ctx.Process.
        made = type("Process", (Process,), {"_guard_preload": preload, "__module__": __name__})
        self.Process = made  # type: ignore[misc]

    def get_context(self, method: str | None = None) -> Any:
        return self if method in (None, "forkserver") else super().get_context(method)

    def set_forkserver_preload(self, module_names: Iterable[str]) -> None:
        raise StartMethodError(
            "[CFG301] this context's preload is fixed: name the modules in cuda_fork_guard.get_context(preload=…)"
        )

    def __reduce__(self) -> Any:
        return context_for, (self.preload,)

    def __repr__(self) -> str:
        return f"<cuda_fork_guard context: forkserver, preload={self.preload!r}>"


_contexts: dict[tuple[str, ...], ProvedForkServerContext] = {}


def context_for(preload: tuple[str, ...]) -> ProvedForkServerContext:
    """The one context with this preload.

    :raises StartMethodError: the server already runs with another.
    """
    server.current().require(preload)
    return _contexts.setdefault(preload, ProvedForkServerContext(preload))


def _close_all(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _write(data_w: int, payload: bytes) -> None:
    try:
        with open(data_w, "wb", closefd=True) as pipe:
            pipe.write(payload)
    except BrokenPipeError:
        pass  # the worker refused, or is gone: its verdict says which

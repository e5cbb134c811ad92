"""Forking after CUDA is up is legal, and harmless as long as the child never uses CUDA: that is what ordinary DataLoader
workers do. So by default this guard says nothing at the fork; it speaks when a child really uses CUDA, and then names
three lines: where it was used, where it was forked, and who woke CUDA.

``import cuda_fork_guard`` at program start installs it, with the policy in ``CUDA_FORK_GUARD``, else ``watch``.

PYTEST_DONT_REWRITE: under ``CUDA_FORK_GUARD`` this is imported before pytest, which would warn that it came too late for
its assertions (and stop, with warnings as errors).
"""

from __future__ import annotations

from . import contexts, fork_site, guard, no_cuda, worker, worker_init
from .errors import (
    CudaForkGuardError,
    CudaForkGuardWarning,
    CudaInitializedError,
    DriverUnavailableError,
    ForkServerNotCleanError,
    InheritedCudaError,
    StartMethodError,
    UnsafeForkError,
    UnsafeForkWarning,
    WorkerError,
    WorkerNotCleanError,
    WrongDeviceError,
)
from .event_log import Event, Events
from .frames import Frame
from .origin import Origin
from .process_status import Status
from .start_method import get_context, set_start_method
from .worker_report import WorkerReport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__version__ = "0.1.0"

__all__ = [
    "CudaForkGuardError",
    "CudaForkGuardWarning",
    "CudaInitializedError",
    "DriverUnavailableError",
    "Event",
    "Events",
    "ForkServerNotCleanError",
    "Frame",
    "InheritedCudaError",
    "Origin",
    "StartMethodError",
    "Status",
    "UnsafeForkError",
    "UnsafeForkWarning",
    "WorkerError",
    "WorkerNotCleanError",
    "WorkerReport",
    "WrongDeviceError",
    "allow_fork",
    "check_fork",
    "events",
    "get_context",
    "install",
    "make_worker_init_fn",
    "no_cuda_init",
    "policy",
    "set_start_method",
    "status",
    "uninstall",
    "verify_worker",
    "worker_init_fn",
]


def install(policy: str | None = None, *, origin: bool | None = None, tripwire: bool | None = None) -> None:
    """Installs the guard, or changes a running one; may be called any number of times.

    :param policy: ``off``, ``watch``, ``warn`` or ``block``. None leaves a running guard's policy; else it means the
        variable ``CUDA_FORK_GUARD``, else ``watch``.
    :param origin: False keeps out of ``CUDA_INJECTION64_PATH``: who woke CUDA is then not known. None: leave, or True.
    :param tripwire: False arms nothing in forked children: a touch is then not seen. None: leave, or True.
    :raises ValueError: an unknown policy.
    """
    guard.install(policy, origin, tripwire)


def uninstall() -> None:
    """Takes the guard back to no effect. The audit hook can't be removed from the interpreter: what it costs an audited
    event stays (docs/cost.md)."""
    guard.uninstall()


def status() -> Status:
    """Everything the guard can say about this process now. Wakes nothing, loads nothing."""
    return guard.read_status()


def policy(p: str) -> contexts.PolicyContext:
    """A context manager: the policy ``p`` for the whole process while inside.

    :raises ValueError: an unknown policy.
    """
    return contexts.PolicyContext(p)


def allow_fork(reason: str) -> contexts.AllowFork:
    """A context manager: forks that this thread makes inside are intended. They are never warned about or blocked, but
    recorded; the children are inherited all the same, and a touch in them is reported.

    :raises ValueError: no reason is given.
    """
    return contexts.AllowFork(reason)


def check_fork() -> None:
    """Applies the policy now, exactly as ``os.fork`` called here would; no process is made.

    :raises UnsafeForkError: the policy is ``block`` and a fork would be unsafe.
    """
    guard.check(fork_site.caller(1))


def verify_worker(expect: str = "clean", *, device: int | None = None, release_handles: bool = False) -> WorkerReport:
    """Verifies this process, and returns what it found.

    - ``"clean"``: not inherited, and no CUDA here yet: whatever context this process makes will be its own.
    - ``"fresh"``: this process has its own primary context on ``device`` (the ordinal it sees), proved by a real
      allocation, write, read-back, comparison and free. It stays retained for the life of the process and does not
      become the thread's current context. In a parent: is my own context still sound?
    - ``"cpu-only"``: may have been forked from a CUDA process and must never use CUDA; the tripwire is armed. With
      ``release_handles`` every inherited device descriptor is replaced by ``/dev/null``.

    :raises InheritedCudaError: forked from a process in which CUDA was up.
    :raises WorkerNotCleanError: this process's own code already woke CUDA.
    :raises WrongDeviceError: a context is active on another device, or there is no such device.
    :raises DriverUnavailableError: no driver, or a call of it failed.
    :raises ForkServerNotCleanError: forked by a forkserver in which CUDA is up.
    :raises ValueError: bad arguments, or arguments that don't go together.
    """
    return worker.verify(expect, device, release_handles)


def worker_init_fn(worker_id: int) -> None:
    """For ``DataLoader(worker_init_fn=…)``: ``verify_worker("clean")`` in each worker."""
    del worker_id
    worker.verify("clean", None, False)


def make_worker_init_fn(
    fn: Callable[[int], object] | None = None,
    *,
    expect: str = "clean",
    device: int | None = None,
    release_handles: bool = False,
) -> worker_init.WorkerInit:
    """A picklable ``worker_init_fn`` that verifies its worker, then calls ``fn`` with the worker's number.

    :raises ValueError: as ``verify_worker``, but here, before any worker is started.
    """
    return worker_init.WorkerInit(fn, expect, device, release_handles)


def no_cuda_init() -> no_cuda.NoCudaInit:
    """A context manager: proves that the block never called ``cuInit``; a call that failed counts.

    :raises CudaInitializedError: it was called, with the line; or, at once, CUDA is already up, so that nothing could be
        proved.
    :raises CudaForkGuardError: calls of ``cuInit`` can't be seen here; the text says why.
    """
    return no_cuda.NoCudaInit()


def events() -> Events:
    """What the guard saw in this process and in its forked descendants, oldest first. ``counts`` is exact, the newest
    256 keep their text, ``dropped`` says how many do not."""
    return guard.read_events()


guard.install(None, None, None)

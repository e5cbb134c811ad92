"""The first thing a new worker does, before the main script's module level, its arguments or its target."""

from __future__ import annotations

import os

from cuda_fork_guard import verify_worker
from cuda_fork_guard.errors import CudaForkGuardError

from . import cpython, server, verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class StartCheck:
    """Rides in the preparation data that multiprocessing sends to each worker: unpickling it verifies the worker."""

    def __init__(self, *, descriptor: Any, lent: tuple[Any, ...], refuse: bool) -> None:
        self.arguments = (descriptor, lent, refuse)

    def __reduce__(self) -> Any:
        return begin, self.arguments


def begin(descriptor: Any, lent: tuple[Any, ...], refuse: bool) -> None:
    """Verify, answer, go on. A worker that is refused ends here; its parent raises why."""
    answer_to = descriptor.detach()
    try:
        verify_worker("clean")
    except CudaForkGuardError as error:
        if refuse:
            verdict.refuse(answer_to, error)
            os._exit(1)
        # In a pool's own thread nobody would hear it, and map() would wait for ever: the touch will be reported.
    verdict.clean(answer_to)
    address, authkey, preload = lent
    server.borrow(address, authkey, cpython.worker_alive_fd(), preload)
    # As CPython's own workers have: what they start by default is started as they were.
    from .context import context_for

    cpython.set_default_context(context_for(preload))

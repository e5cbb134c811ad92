"""``verify_loader``: every worker of a ``DataLoader``, verified by itself and told to the program."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing import connection
from typing import Any

import torch
import torch.multiprocessing
from torch.utils.data import DataLoader

from cuda_fork_guard import WorkerReport, verify_worker
from cuda_fork_guard.errors import CudaForkGuardError, WorkerError
from cuda_fork_guard.integrations.report_table import WorkerReports
from cuda_fork_guard.worker_init import WorkerInit

WorkerInitFn = Callable[[int], object]


def verify_loader(loader: DataLoader[Any]) -> WorkerReports:
    """One report for each worker that ``loader`` starts; printed, they are a table.

    Starts workers as iterating would, with the loader's own context and ``worker_init_fn``, and verifies each before that
    function runs: as ``make_worker_init_fn`` was told, if it made it, else as ``clean``. Persistent workers are kept for
    the first epoch; others end. The program's random numbers are as if nothing had happened.

    :raises WorkerError: a worker is not what was expected; the class is the worker's own, its text says which worker.
    :raises ForkServerNotCleanError: the context's forkserver is not clean, and no worker was started.
    :raises ValueError: the loader's persistent workers run already, and can't be asked any more.
    """
    if loader.num_workers == 0:
        return WorkerReports(())
    if loader.persistent_workers and loader._iterator is not None:
        raise ValueError(
            "this loader's persistent workers run already: call verify_loader before the first iteration, or give the "
            "loader worker_init_fn=cuda_fork_guard.make_worker_init_fn(…), which verifies them when they start"
        )
    context: Any = loader.multiprocessing_context or torch.multiprocessing
    answers = context.SimpleQueue()
    own, random_state = loader.worker_init_fn, _random_state(loader)
    loader.worker_init_fn = _Reporting(own, answers)
    try:
        iterator: Any = iter(loader)
    finally:
        loader.worker_init_fn = own
        _restore(loader, random_state)
    try:
        found = _collect(answers, iterator._workers)
    finally:
        answers.close()
        if not loader.persistent_workers:
            iterator._shutdown_workers()
    return _judge(found)


class _Reporting:
    """The ``worker_init_fn`` for the while: answers to the program, then does what the loader's own would have done."""

    def __init__(self, own: WorkerInitFn | None, answers: Any) -> None:
        self._own = own
        self._answers = answers

    def __call__(self, worker_id: int) -> None:
        try:
            report = self._own.verify() if isinstance(self._own, WorkerInit) else verify_worker("clean")
        except CudaForkGuardError as error:
            self._answers.put((worker_id, error))
            raise
        self._answers.put((worker_id, report))
        if isinstance(self._own, WorkerInit):
            self._own.call_own(worker_id)
        elif self._own is not None:
            self._own(worker_id)


def _collect(answers: Any, workers: list[Any]) -> list[WorkerReport | CudaForkGuardError]:
    found: dict[int, WorkerReport | CudaForkGuardError] = {}
    while len(found) < len(workers):
        silent = [worker for number, worker in enumerate(workers) if number not in found]
        # A worker that was killed answers nothing, and must not be waited for.
        connection.wait([answers._reader, *(worker.sentinel for worker in silent)])
        if not answers.empty():
            number, answer = answers.get()
            found[number] = answer
            continue
        ended = next(worker for worker in silent if not worker.is_alive())
        raise WorkerError(
            f"[CFG206] worker {workers.index(ended)} of {len(workers)} (pid {ended.pid}) ended with exit code "
            f"{ended.exitcode} before it was verified"
        )
    return [found[number] for number in range(len(workers))]


def _judge(found: list[WorkerReport | CudaForkGuardError]) -> WorkerReports:
    errors = {number: error for number, error in enumerate(found) if isinstance(error, CudaForkGuardError)}
    if errors:
        number, error = next(iter(errors.items()))
        raise type(error)(
            f"{error}\n  loader:  worker {number} of {len(found)}; {len(errors)} of its workers failed to be verified"
        )
    return WorkerReports(report for report in found if isinstance(report, WorkerReport))


def _random_state(loader: DataLoader[Any]) -> tuple[torch.Tensor, torch.Tensor | None]:
    generator = loader.generator
    return torch.get_rng_state(), generator.get_state() if generator is not None else None


def _restore(loader: DataLoader[Any], state: tuple[torch.Tensor, torch.Tensor | None]) -> None:
    torch.set_rng_state(state[0])
    if loader.generator is not None and state[1] is not None:
        loader.generator.set_state(state[1])
    if loader.persistent_workers:
        # Their seed was drawn already, and won't be drawn again when the first epoch begins.
        torch.empty((), dtype=torch.int64).random_(generator=loader.generator)

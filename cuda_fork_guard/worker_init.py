"""What ``make_worker_init_fn`` returns."""

from __future__ import annotations

from . import expectations, worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .worker_report import WorkerReport


class WorkerInit:
    """A picklable ``worker_init_fn`` that verifies, then calls ``fn``."""

    def __init__(
        self, fn: Callable[[int], object] | None, expect: str, device: int | None, release_handles: bool
    ) -> None:
        expectations.check(expect, device, release_handles)
        if fn is not None and not callable(fn):
            raise ValueError(f"fn={fn!r} can't be called: give a function of the worker's number, or None")
        self._fn = fn
        self._expect = expect
        self._device = device
        self._release_handles = release_handles

    def __call__(self, worker_id: int) -> None:
        self.verify()
        self.call_own(worker_id)

    def verify(self) -> WorkerReport:
        """The first half: what this process was found to be."""
        return worker.verify(self._expect, self._device, self._release_handles)

    def call_own(self, worker_id: int) -> None:
        """The second half: the user's function."""
        if self._fn is not None:
            self._fn(worker_id)

    def __repr__(self) -> str:
        return f"<worker_init_fn that expects {self._expect!r}, then calls {self._fn!r}>"

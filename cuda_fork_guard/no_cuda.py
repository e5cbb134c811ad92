"""``no_cuda_init``: proof that a block of code, or an import, never called ``cuInit``."""

from __future__ import annotations

from . import guard, waking
from .errors import CudaForkGuardError, CudaInitializedError


def looked_at() -> str:
    """Why it could not be seen that ``cuInit`` is called, or "" if it can."""
    if guard.native is None:
        return guard.unsupported_reason
    found = guard.current_evidence(guard.native)
    if found.libraries and found.cuinit_calls:
        return ""  # the hook was called before, so it will be again: how often it was is all that counts
    return waking.not_watching_from_now()


class NoCudaInit:
    """A context manager that can be entered again, also inside itself."""

    def __init__(self) -> None:
        self._calls: list[int] = []

    def __enter__(self) -> None:
        native = guard.native
        why = looked_at()
        if native is None or why:
            raise CudaForkGuardError(f"[CFG402] it can't be proved here that cuInit is not called: {why}")
        native.settle_cuinit()
        status = guard.read_status()
        if status.fork_is_safe is False:
            raise CudaInitializedError(
                f"[CFG401] CUDA is already {status.driver or 'up'} in this process, so nothing can be proved of this "
                f"block.\n  woken:   {waking.woken_line(native)}\n  do:      enter no_cuda_init() before that line"
            )
        self._calls.append(native.state()["cuinit_calls"])
        waking.watch_next_call(native)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        native = guard.native
        before = self._calls.pop()
        if native is None or (error is not None and not isinstance(error, Exception)):
            return  # KeyboardInterrupt and SystemExit are the program's own business
        native.settle_cuinit()
        calls = native.state()["cuinit_calls"] - before
        if calls > 0:
            raise CudaInitializedError(
                f"[CFG401] cuInit was called{_times(calls)} in a block that must not call it.\n"
                f"  woken:   {waking.woken_line(native)}"
            ) from error


def _times(calls: int) -> str:
    return "" if calls == 1 else f" {calls} times"

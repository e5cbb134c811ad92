"""``get_context`` and ``set_start_method``: a start method that is safe for CUDA, or one clear error.

multiprocessing is imported when one of them is called, never before.
"""

from __future__ import annotations

import sys

from . import guard, paths
from .errors import StartMethodError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from multiprocessing.context import BaseContext

AUTO = "auto"

# Where this module last set the process default, for the error of whoever comes later. (method, preload, place)
_set_here: tuple[str, tuple[str, ...], str] | None = None

_WAY_OUT = (
    "a default can be set once and only before anything uses it. Use a context object instead, which needs no default: "
    "ctx = cuda_fork_guard.get_context(), then ctx.Process, ctx.Pool, DataLoader(…, multiprocessing_context=ctx), "
    "ProcessPoolExecutor(mp_context=ctx)"
)


def available() -> tuple[str, ...]:
    """The start methods of this platform. Asking ``multiprocessing`` fixes nothing."""
    import multiprocessing

    return tuple(multiprocessing.get_all_start_methods())


def resolve(method: str) -> str:
    """The method that ``method`` means here.

    :raises StartMethodError: not a start method, or not one of this platform.
    """
    methods = available()
    if method == AUTO:
        # The proof of a forkserver needs the native module, which there is on Linux alone.
        return "forkserver" if "forkserver" in methods and _provable() else "spawn"
    if method not in methods:
        raise StartMethodError(
            f"[CFG301] there is no start method {method!r} here: this platform has {', '.join(methods)}, "
            f"and 'auto' would be {resolve(AUTO)}"
        )
    return method


def get_context(method: str = AUTO, *, preload: Iterable[str] = ()) -> BaseContext:
    """A multiprocessing context for workers that may use CUDA.

    ``auto`` is the forkserver where the platform has it, else spawn; never fork. The forkserver imports the guard and
    the ``preload`` modules once and is proved free of CUDA before its first worker starts; each worker is verified.

    :raises StartMethodError: unknown or unavailable method, or the server already runs with another preload.
    """
    chosen = resolve(method)
    modules = _checked_preload(method, chosen, preload)
    if chosen != "forkserver" or not _provable():
        import multiprocessing

        return multiprocessing.get_context(chosen)
    from .forkserver.context import context_for

    return context_for(modules)


def set_start_method(method: str = AUTO, *, preload: Iterable[str] = ()) -> str:
    """Make what :func:`get_context` returns the default of ``multiprocessing``, and so of ``torch.multiprocessing``.

    Returns the method in effect. ``multiprocess`` (HF datasets) has a default of its own, which stays as it is.

    :raises StartMethodError: the default is already fixed to another method.
    """
    global _set_here
    import multiprocessing

    wanted = get_context(method, preload=preload)
    name = str(wanted.get_start_method())
    fixed = _fixed()
    # CPython's own forkserver as the default is replaced by the proved one: same method, same kinds of locks.
    if fixed is not None and fixed != name:
        raise StartMethodError(_already_fixed(method, name, fixed))
    if name == "forkserver" and _provable():
        from .forkserver import cpython

        cpython.set_default_context(wanted)
    elif fixed is None:
        multiprocessing.set_start_method(name)
    _set_here = (name, tuple(getattr(wanted, "preload", ())), _place_of_caller())
    return name


def defaults() -> dict[str, str | None]:
    """Each loaded library's default start method; ``None``: not fixed yet. Asking fixes none and imports none."""
    found: dict[str, str | None] = {}
    for library in ("multiprocessing", "torch.multiprocessing", "multiprocess"):
        module = sys.modules.get(library)
        ask = getattr(module, "get_start_method", None)
        if ask is not None:
            found[library] = ask(allow_none=True)
    return found


def _fixed() -> str | None:
    import multiprocessing

    return multiprocessing.get_start_method(allow_none=True)


def _provable() -> bool:
    return guard.native is not None


def _checked_preload(method: str, chosen: str, preload: Iterable[str]) -> tuple[str, ...]:
    if isinstance(preload, str):
        raise StartMethodError(f"[CFG301] preload is a tuple of module names: write preload=({preload!r},)")
    modules = tuple(preload)
    bad = [name for name in modules if not isinstance(name, str) or not name]
    if bad:
        raise StartMethodError(f"[CFG301] preload is a tuple of module names, {bad[0]!r} is none")
    if modules and chosen != "forkserver":
        if method != AUTO:
            raise StartMethodError(f"[CFG301] preload goes with the forkserver only: {chosen} has no server to load it")
        return ()  # where auto means spawn there is nothing to preload, and nothing is lost but time
    return tuple(dict.fromkeys(modules))


def _already_fixed(method: str, wanted: str, fixed: str) -> str:
    asked = f"{method!r} (here: {wanted})" if method == AUTO else repr(method)
    if _set_here is not None and _set_here[0] == fixed:
        where = f"at {_set_here[2]}, by cuda_fork_guard.set_start_method"
    else:
        where = (
            "at a place that Python does not record: multiprocessing.set_start_method, get_start_method() without "
            "allow_none=True, or the first Lock, Queue, Event, Pool or Process made without a context (tqdm makes one)"
        )
    return (
        f"[CFG301] the start method is already fixed to {fixed!r}, {asked} comes too late. It was fixed {where}; "
        f"{_WAY_OUT}"
    )


def _place_of_caller() -> str:
    frame = sys._getframe(2)
    return f"{paths.shown(frame.f_code.co_filename)}:{frame.f_lineno} in {frame.f_code.co_name}"

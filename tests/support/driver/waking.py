"""Checks: who called cuInit. Each returns the origin that ``status()`` shows, as plain data."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import cuda_fork_guard


def origin() -> dict[str, Any]:
    found = cuda_fork_guard.status().origin
    assert found is not None, cuda_fork_guard.status()
    return {**found.as_dict(), "line": found.line(), "chain": found.chain_text()}


def functions(found: dict[str, Any]) -> list[str]:
    return [frame["function"] for frame in found["python"]]


def on_a_thread(function: Callable[[], object], name: str | None = None) -> None:
    thread = threading.Thread(target=function, name=name)
    thread.start()
    thread.join()


def wake(library: ctypes.CDLL) -> int:
    return int(library.cuInit(0))


def with_the_gil(path: str) -> dict[str, Any]:
    wake(ctypes.PyDLL(path))
    return origin()


def without_the_gil(path: str) -> dict[str, Any]:
    wake(ctypes.CDLL(path))
    return origin()


def on_another_thread(path: str, held: bool) -> dict[str, Any]:
    """The thread is still there when it is asked for."""
    library = (ctypes.PyDLL if held else ctypes.CDLL)(path)
    seen, end = threading.Event(), threading.Event()

    def loader() -> None:
        wake(library)
        seen.set()
        end.wait()

    thread = threading.Thread(target=loader, name="loader-1")
    thread.start()
    seen.wait()
    try:
        found = origin()
    finally:
        end.set()
        thread.join()
    assert origin()["line"] == found["line"]  # the same text, although the thread has ended
    return {**found, "native thread": thread.native_id}


def with_every_signal_blocked(path: str) -> dict[str, Any]:
    library = ctypes.CDLL(path)

    def blocked() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
        wake(library)

    on_a_thread(blocked)
    return origin()


def on_a_thread_python_never_saw(path: str, helper: str) -> dict[str, Any]:
    ctypes.CDLL(helper).on_a_foreign_thread(ctypes.CDLL(path).cuInit)
    return origin()


def two_threads_at_once(path: str) -> dict[str, Any]:
    """Neither waits for the other; one of them is the origin, and both calls are counted."""
    library = ctypes.CDLL(path)
    barrier = threading.Barrier(2)

    def racer() -> None:
        barrier.wait()
        wake(library)

    threads = [threading.Thread(target=racer) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {**origin(), "tids": [thread.native_id for thread in threads], "events": cuda_fork_guard.events().counts}


def after_a_subinterpreter(path: str) -> dict[str, Any]:
    """PyGILState_Check would now answer 1 for ever."""
    if sys.version_info >= (3, 13):
        import _interpreters as interpreters
    else:
        import _xxsubinterpreters as interpreters
    interpreters.destroy(interpreters.create())
    library = ctypes.CDLL(path)
    on_a_thread(lambda: wake(library))
    return origin()


def after_closing_every_descriptor(path: str) -> dict[str, Any]:
    library = ctypes.CDLL(path)
    os.closerange(3, 20000)
    wake(library)
    return origin()


def recursion(path: str, depth: int, held: bool) -> dict[str, Any]:
    """cuInit at the bottom of so many calls; an audit event on the same thread completes what is missing."""
    library = (ctypes.PyDLL if held else ctypes.CDLL)(path)
    sys.setrecursionlimit(depth + 1000)

    def descend(left: int) -> None:
        if left:
            descend(left - 1)
        else:
            wake(library)
            sys.audit("some.event")

    descend(depth)
    return origin()


def through_many_functions(path: str, count: int, ask: bool) -> dict[str, Any]:
    """A stack without recursion, more than faulthandler's 100 frames deep; ``ask``: with an audit event at its bottom."""
    library = ctypes.CDLL(path)
    source = "".join(f"def f{number}():\n    f{number + 1}()\n" for number in range(count))
    ending = "    wake(library)\n" + "    sys.audit('some.event')\n" * ask
    names = {"wake": wake, "library": library, "sys": sys}
    exec(compile(f"{source}def f{count}():\n{ending}", "many.py", "exec"), names)
    names["f0"]()
    return origin()


def in_a_file_called(path: str, name: str, held: bool) -> dict[str, Any]:
    """:param name: of the file, bytes as surrogates."""
    names = {"wake": wake, "library": (ctypes.PyDLL if held else ctypes.CDLL)(path)}
    exec(compile("def größe():\n    wake(library)\ngröße()\n", name, "exec"), names)
    found = origin()
    return {**found, "files": [ascii(frame["file"]) for frame in found["python"]]}


def fails_first_and_works_later(path: str, ask: bool) -> dict[str, Any]:
    """``ask``: with an audit event before the second call."""
    library = ctypes.CDLL(path)

    def first() -> int:
        return wake(library)

    codes = [first()]
    if ask:
        sys.audit("some.event")
    codes += [wake(library), wake(library)]
    return {**origin(), "codes": codes, "driver": cuda_fork_guard.status().driver}


def while_it_runs(path: str) -> dict[str, Any]:
    """Asked while another thread is inside cuInit (the simulated driver is slow), and after it."""
    library = ctypes.CDLL(path)
    thread = threading.Thread(target=wake, args=(library,), name="slow")
    thread.start()
    while (found := cuda_fork_guard.status()).driver != "tried":
        pass
    thread.join()
    return {"driver": found.driver, "result": found.origin.result, "line": found.origin.line(), "later": origin()}


def with_an_error_set(path: str, helper: str) -> dict[str, Any]:
    """An exception is pending in C when cuInit is called; it has to arrive."""
    call = ctypes.PyDLL(helper).with_an_error_set
    call.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    set_error = ctypes.cast(ctypes.pythonapi.PyErr_SetString, ctypes.c_void_p)
    try:
        call(set_error, KeyError, ctypes.cast(ctypes.CDLL(path).cuInit, ctypes.c_void_p))
    except KeyError as error:
        return {**origin(), "arrived": list(error.args)}
    return {"arrived": []}


def by_a_wrapped_library(path: str, library: str) -> dict[str, Any]:
    """Through a function of a C library: (its origin when the GIL is held)."""
    ctypes.PyDLL(library).call_the_driver(ctypes.CDLL(path).cuInit)
    return origin()

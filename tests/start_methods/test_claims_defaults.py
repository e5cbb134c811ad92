"""What people say about the default start method, each statement measured. docs/start-methods.md has a row for each test."""

from __future__ import annotations

import sys

import pytest
from support.program import Program

PY314 = sys.version_info >= (3, 14)
DEFAULT = "forkserver" if PY314 and sys.platform.startswith("linux") else "fork"

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="measured on Linux")


def test_claim_except_value_error_catches_it(program: Program) -> None:
    """Already set is RuntimeError; unknown is ValueError. The guard's StartMethodError is both."""
    code = """
    import multiprocessing
    import cuda_fork_guard as guard
    def kinds(function, *arguments):
        try:
            function(*arguments)
        except Exception as error:
            return isinstance(error, RuntimeError), isinstance(error, ValueError)
    multiprocessing.set_start_method("fork")
    print(kinds(multiprocessing.set_start_method, "spawn"), kinds(multiprocessing.set_start_method, "x"))
    print(kinds(guard.set_start_method, "spawn"), kinds(guard.set_start_method, "x"))
    """
    told = program(code).ok().lines
    # An unknown name is not even looked at once a method is fixed.
    assert told == ["(True, False) (True, False)", "(True, True) (True, True)"]


def test_claim_an_unknown_method_is_a_value_error(program: Program) -> None:
    code = """
    import multiprocessing
    try:
        multiprocessing.set_start_method("x")
    except ValueError as error:
        print(error)
    """
    assert program(code).ok().out == "cannot find context for 'x'\n"


def test_claim_force_helps(program: Program) -> None:
    """It changes the default for what is started later. A running server keeps its preloads, a pool its workers."""
    code = """
    import multiprocessing, os, sys
    def work(number):
        return os.getppid(), "counted" in sys.modules
    if __name__ == "__main__":
        multiprocessing.set_start_method("forkserver")
        multiprocessing.set_forkserver_preload(["json"])
        pool = multiprocessing.Pool(1)
        (server, loaded), = pool.map(work, [0])
        multiprocessing.set_start_method("forkserver", force=True)
        multiprocessing.set_forkserver_preload(["counted"])
        with multiprocessing.Pool(1) as other:
            assert other.map(work, [0]) == [(server, False)]
        multiprocessing.set_start_method("spawn", force=True)
        assert pool.map(work, [0]) == [(server, False)]
        with multiprocessing.Pool(1) as other:
            assert other.map(work, [0]) == [(os.getpid(), False)]
        pool.terminate()
    """
    program(code).ok()


def test_claim_verify_with_get_start_method(program: Program) -> None:
    """Looking fixes what was looked at, unless allow_none=True."""
    code = """
    import multiprocessing
    assert multiprocessing.get_start_method(allow_none=True) is None
    multiprocessing.get_start_method()
    try:
        multiprocessing.set_start_method("spawn")
    except RuntimeError as error:
        print(error)
    """
    assert program(code).ok().out == "context has already been set\n"


def test_claim_each_library_has_a_default_of_its_own_multiprocess(program: Program) -> None:
    """multiprocess (HF datasets) has: what is set for multiprocessing says nothing about it."""
    pytest.importorskip("multiprocess")
    code = """
    import multiprocessing, multiprocess
    multiprocessing.set_start_method("spawn")
    assert multiprocess.get_start_method(allow_none=True) is None
    print(multiprocess.get_start_method())
    """
    assert program(code).ok().out in ("fork\n", "forkserver\n")


def test_claim_3_14_runs_the_main_script_in_the_server(program: Program) -> None:
    """Only 3.14's default does: its module level counts as a preload. Before, '__main__' in the preloads did nothing."""
    code = """
    import multiprocessing, os
    import counted
    def work(queue):
        queue.put(counted.IMPORTED_BY == os.getppid())
    if __name__ == "__main__":
        context = multiprocessing.get_context("forkserver")
        queue = context.SimpleQueue()
        worker = context.Process(target=work, args=(queue,))
        worker.start()
        print(queue.get())
        worker.join()
    """
    expected = {(3, 14): "True\n", (3, 13): None}.get(sys.version_info[:2], "False\n")
    told = program(code).ok().out
    assert told == expected if expected else told in ("True\n", "False\n")


def test_claim_3_14_default_method(program: Program) -> None:
    code = """
    import multiprocessing
    print(multiprocessing.get_start_method())
    """
    assert program(code).ok().out == f"{DEFAULT}\n"

"""What people say about CUDA and start methods, each statement measured. docs/start-methods.md has a row for each test."""

from __future__ import annotations

import sys

import pytest
from support.program import Program

PY314 = sys.version_info >= (3, 14)
DEFAULT = "forkserver" if PY314 and sys.platform.startswith("linux") else "fork"

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="measured on Linux")


def test_claim_forkserver_is_not_available_everywhere(program: Program) -> None:
    code = """
    import multiprocessing
    print(sorted(multiprocessing.get_all_start_methods()), multiprocessing.reduction.HAVE_SEND_HANDLE)
    """
    assert program(code).ok().out == "['fork', 'forkserver', 'spawn'] True\n"


def test_claim_forkserver_is_not_stable(program: Program) -> None:
    """A hundred workers one after the other, by CPython's own server; test_users.py does the same with the proved one."""
    code = """
    import multiprocessing
    import left
    if __name__ == "__main__":
        context = multiprocessing.get_context("forkserver")
        def some(count):
            for _ in range(count):
                worker = context.Process(target=abs, args=(0,))
                worker.start()
                worker.join()
                assert worker.exitcode == 0
                worker.close()
        some(10)
        before = left.descriptors()
        some(100)
        assert left.descriptors() == before and len(left.children()) == 1
    """
    program(code, limit=100).ok()


CHILD_RESULT = """
import multiprocessing, sys
import use_driver
def work(queue):
    queue.put(use_driver.wake())
def innocent(queue):
    queue.put(sum(range(10)))
def result_of(context, target):
    queue = context.SimpleQueue()
    worker = context.Process(target=target, args=(queue,))
    worker.start()
    told = queue.get()
    worker.join()
    assert worker.exitcode == 0
    return told
"""


def test_claim_fork_is_always_corrupt(program: Program) -> None:
    """Only if the child uses CUDA: then cuInit answers 3."""
    code = CHILD_RESULT + (
        """
if __name__ == "__main__":
    assert use_driver.wake() == 0
    fork = multiprocessing.get_context("fork")
    print(result_of(fork, innocent), result_of(fork, work), use_driver.wake())
"""
    )
    assert program(code).ok().out == "45 3 0\n"


def test_claim_spawn_is_the_only_reliable_way(program: Program) -> None:
    code = CHILD_RESULT + (
        """
if __name__ == "__main__":
    assert use_driver.wake() == 0
    print(*(result_of(multiprocessing.get_context(name), work) for name in ("spawn", "forkserver")))
"""
    )
    assert program(code).ok().out == "0 0\n"


def test_claim_forkserver_inherits_cuda_if_it_starts_after_init(program: Program) -> None:
    """No: it is a fresh program. PF_FORKNOEXEC (0x40) tells a fork from it."""
    code = CHILD_RESULT + (
        """
def server_flags(queue):
    import os
    flags = int(open(f"/proc/{os.getppid()}/stat").read().rpartition(")")[2].split()[6])
    queue.put(bool(flags & 0x40))
if __name__ == "__main__":
    assert use_driver.wake() == 0  # before the server is there
    context = multiprocessing.get_context("forkserver")
    print(result_of(context, server_flags), result_of(context, work))
"""
    )
    assert program(code).ok().out == "False 0\n"


def test_claim_a_preload_that_wakes_cuda_breaks_all_its_workers(program: Program) -> None:
    code = CHILD_RESULT + (
        """
if __name__ == "__main__":
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["wakes_cuda"])
    print(*(result_of(context, work) for _ in range(3)))
"""
    )
    assert program(code).ok().out == "3 3 3\n"


# What fixes the process default, by the act. The second field: from 3.14 on.
ACTS = {
    "get_all_start_methods()": (None, None),
    "get_start_method(allow_none=True)": (None, None),
    "get_start_method()": (DEFAULT, DEFAULT),
    "get_context()": (DEFAULT, DEFAULT),
    "get_context('spawn')": (None, None),
    "get_context('spawn').Lock()": (None, None),
    "Lock()": (DEFAULT, DEFAULT),
    "Event()": (DEFAULT, DEFAULT),
    "Queue()": (DEFAULT, DEFAULT),
    "SimpleQueue()": (DEFAULT, DEFAULT),
    "Value('i')": (DEFAULT, DEFAULT),
    "RawValue('i')": (None, None),
    "Pipe()": (None, None),
    "cpu_count()": (None, None),
    "set_forkserver_preload(['json'])": (None, None),
    "Process(target=abs)": (None, None),
    "Process(target=abs, args=(0,)).start()": (DEFAULT, DEFAULT),
    "Pool(1).terminate()": (DEFAULT, DEFAULT),
    "pool.ThreadPool(1).terminate()": (DEFAULT, DEFAULT),
    "get_context('fork').Process(target=abs, args=(0,)).start()": (None, None),
    "get_context('spawn').Process(target=abs, args=(0,)).start()": (DEFAULT, None),
    "get_context('forkserver').Process(target=abs, args=(0,)).start()": (DEFAULT, None),
}


@pytest.mark.parametrize("act", ACTS)
def test_claim_set_start_method_raises_after_any_multiprocessing(program: Program, act: str) -> None:
    code = f"""
    import multiprocessing, multiprocessing.pool
    if __name__ == "__main__":
        multiprocessing.{act}
        fixed = multiprocessing.get_start_method(allow_none=True)
        try:
            multiprocessing.set_start_method("spawn")
        except RuntimeError as error:
            assert fixed is not None and str(error) == "context has already been set"
        else:
            assert fixed is None
        print(fixed)
    """
    assert program(code).ok().out == f"{ACTS[act][PY314]}\n"


def test_claim_set_start_method_raises_after_cuda_is_up(program: Program) -> None:
    code = """
    import multiprocessing
    import use_driver
    assert use_driver.wake() == 0
    multiprocessing.set_start_method("spawn")
    """
    program(code).ok()


def test_claim_a_progress_bar_fixes_the_method(program: Program) -> None:
    pytest.importorskip("tqdm")
    code = """
    import multiprocessing
    import tqdm
    before = multiprocessing.get_start_method(allow_none=True)
    list(tqdm.tqdm(range(2), file=open("bar.txt", "w")))
    print(before, multiprocessing.get_start_method(allow_none=True))
    """
    assert program(code).ok().out == f"None {DEFAULT}\n"


def test_claim_a_failed_preload_is_said(program: Program) -> None:
    """No: CPython swallows the ImportError, and every worker imports for itself."""
    code = CHILD_RESULT + (
        """
if __name__ == "__main__":
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["no_such_module_at_all"])
    print(result_of(context, innocent))
"""
    )
    finished = program(code).ok()
    assert finished.out == "45\n" and finished.err == ""

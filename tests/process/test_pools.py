"""Pools: refused where somebody can catch it, never where ``map()`` would wait for ever. Case 21 among them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.child import environment, python

QUIET = ("-W", "ignore::DeprecationWarning")  # Python's own on forks of threaded processes (3.12)

REPLACED = """
import multiprocessing, os, sys
import cuda_fork_guard as guard
from cuda_fork_guard.testing import simulated_cuda

def work(_):
    return os.getpid(), guard.status().inherited

if __name__ == "__main__":
    package = __import__(sys.argv[1])
    with simulated_cuda(state="loaded"):
        import ctypes
        pool = package.get_context("fork").Pool(2, maxtasksperchild=1)
        before = pool.map(work, range(4), chunksize=1)
        assert not any(inherited for _, inherited in before)
        assert ctypes.CDLL("libcuda.so.1").cuInit(0) == 0
        # Two workers were replaced before CUDA came up; every further one is born with it up, by the pool's own thread.
        after = pool.map_async(work, range(8), chunksize=1).get(timeout=30)
        # Unknown to one that was forked in the very moment when cuInit ran.
        told = [inherited for _, inherited in after]
        assert len({pid for pid, _ in after}) == 8 and told.count(False) <= 2 and True in told, after
        pool.close()
        pool.join()
        counts = guard.events().counts
        print(counts["fork"] >= 6, counts["touch"])
"""


@pytest.mark.parametrize("package", ["multiprocessing", "multiprocess"])
@pytest.mark.parametrize(
    ("policy", "flags"),
    [("watch", ()), ("warn", ()), ("block", ()), ("warn", ("-W", "error::RuntimeWarning")),
     ("block", ("-W", "error::RuntimeWarning"))],
)  # fmt: skip
def test_case_21_workers_replaced_after_cuda_came_up(
    tmp_path: Path, policy: str, flags: tuple[str, ...], package: str
) -> None:
    pytest.importorskip(package)
    env = environment(CUDA_FORK_GUARD=policy)
    finished = python(REPLACED, package, env=env, cwd=tmp_path, flags=(*QUIET, *flags), limit=45).ok()
    assert finished.out == "True 0\n"
    if policy == "watch":
        assert finished.err == ""
    else:
        # Said, and not raised: as a warning once a line, or line by line where a filter made an error of it.
        assert "[CFG101] fork while CUDA is initialized" in finished.err
        assert ("UnsafeForkWarning" in finished.err) == (not flags)
        assert f"({package}.Pool)" in finished.err


def test_a_pool_that_is_made_while_cuda_is_up_is_refused_at_once(tmp_path: Path) -> None:
    code = """
    import multiprocessing, os
    import cuda_fork_guard as guard
    from cuda_fork_guard.testing import simulated_cuda
    if __name__ == "__main__":
        guard.install("block")
        context = multiprocessing.get_context("fork")
        with simulated_cuda():
            for make in (lambda: context.Pool(2), lambda: context.Process(target=print).start(), lambda: context.Manager()):
                try:
                    make()
                except guard.UnsafeForkError as error:
                    print(str(error).partition("forked:")[2].splitlines()[0].partition("(")[2].rstrip(")"))
            assert multiprocessing.active_children() == [] and guard.events().counts["fork"] == 0
    """
    finished = python(code, cwd=tmp_path, flags=QUIET, limit=30).ok()
    assert finished.lines == ["multiprocessing.Pool", "multiprocessing", "multiprocessing"]
    assert finished.err == ""


def test_an_executor_is_refused_at_submit_and_can_be_shut_down(tmp_path: Path) -> None:
    code = """
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    import cuda_fork_guard as guard
    from cuda_fork_guard.testing import simulated_cuda
    if __name__ == "__main__":
        guard.install("block")
        with simulated_cuda():
            with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as executor:
                try:
                    executor.submit(print)
                except guard.UnsafeForkError as error:
                    assert "(ProcessPoolExecutor)" in str(error), error
                    print("refused")
    """
    assert python(code, cwd=tmp_path, flags=QUIET, limit=30).ok().out == "refused\n"


SURVIVORS = """
import multiprocessing, os, sys
import cuda_fork_guard as guard
from concurrent.futures import ProcessPoolExecutor
from cuda_fork_guard.testing import simulated_cuda

def clean(_=None):
    guard.verify_worker("clean")

def check(text, where):
    assert "[CFG201] worker (pid " in text, (where, text)
    assert "forked:" in text and "woken:" in text and "do:" in text, (where, text)
    print(where)

if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    with simulated_cuda():
        with ProcessPoolExecutor(1, mp_context=context) as executor:
            try:
                executor.submit(clean).result(timeout=30)
            except guard.InheritedCudaError as error:
                check(str(error), "executor")
        with context.Pool(1) as pool:
            for call in (lambda: pool.apply(clean), lambda: pool.map(clean, [1]), lambda: list(pool.imap(clean, [1]))):
                try:
                    call()
                except guard.InheritedCudaError as error:
                    assert str(error).startswith("[CFG201]")
                    check(str(error), "pool")
"""


def test_errors_arrive_with_their_type_through_executors_and_pools(tmp_path: Path) -> None:
    finished = python(SURVIVORS, cwd=tmp_path, flags=QUIET, limit=45).ok()
    assert finished.lines == ["executor", "pool", "pool", "pool"]


def test_blocking_a_start_loses_no_more_descriptors_than_cpython_does(tmp_path: Path) -> None:
    code = """
    import multiprocessing, os, sys
    import cuda_fork_guard as guard
    from cuda_fork_guard.testing import simulated_cuda
    def lost(hooked):
        before = len(os.listdir("/proc/self/fd"))
        try:
            multiprocessing.get_context("fork").Process(target=print).start()
        except (guard.UnsafeForkError, PermissionError):
            pass
        return len(os.listdir("/proc/self/fd")) - before
    strict = False
    def veto(event, args):
        if strict and event == "os.fork":
            raise PermissionError
    if __name__ == "__main__":
        sys.addaudithook(veto)
        strict = True
        by_cpython = lost(False)
        strict = False
        with simulated_cuda(), guard.policy("block"):
            print(lost(True) <= by_cpython <= 4)
    """
    assert python(code, cwd=tmp_path, flags=QUIET).ok().out == "True\n"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="max_tasks_per_child came with 3.11")
def test_an_executor_that_replaces_its_workers(tmp_path: Path) -> None:
    code = """
    import ctypes, multiprocessing, os
    from concurrent.futures import ProcessPoolExecutor
    import cuda_fork_guard as guard
    from cuda_fork_guard.testing import simulated_cuda
    def work(number):
        return guard.verify_worker().pid
    if __name__ == "__main__":
        guard.install("block")
        with simulated_cuda():
            context = multiprocessing.get_context("spawn")
            with ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1) as executor:
                pids = [executor.submit(work, number).result(timeout=30) for number in range(3)]
        print(len(set(pids)))
    """
    assert python(code, cwd=tmp_path, limit=60).ok().out == "3\n"

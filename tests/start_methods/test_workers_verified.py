"""Each worker is verified before anything of the user's runs in it, and a refusal is raised by whoever started it."""

from __future__ import annotations

import sys

import pytest
from support.program import Program

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the forkserver is proved on Linux only")


def test_a_verified_worker_is_on_record_before_its_target_runs(program: Program) -> None:
    code = """
    import cuda_fork_guard as guard
    def work(queue):
        told = [event for event in guard.events() if event.kind == "worker"]
        queue.put([str(event) for event in told])
    if __name__ == "__main__":
        context = guard.get_context()
        queue = context.SimpleQueue()
        worker = context.Process(target=work, args=(queue,))
        worker.start()
        (told,) = queue.get()
        worker.join()
        assert "clean: verified (forkserver)" in told, told
    """
    program(code).ok()


LATE = """
import concurrent.futures, sys
import cuda_fork_guard as guard
def work(number):
    return number
if __name__ == "__main__":
    guard.install(sys.argv[1])
    context = guard.get_context(preload=("wakes_at_fork",))
    # CUDA comes up in the server while it makes this one.
    context.Process(target=work, args=(0,)).start()
    {use}
"""


@pytest.mark.parametrize("policy", ["watch", "warn", "block"])
@pytest.mark.parametrize(
    "use",
    [
        "context.Process(target=work, args=(0,)).start()",
        "context.Pool(2)",
        "concurrent.futures.ProcessPoolExecutor(2, mp_context=context).submit(work, 0).result()",
    ],
)
def test_cuda_that_comes_up_later_in_the_server_is_refused_at_the_start_of_a_worker(
    program: Program, use: str, policy: str
) -> None:
    refused = (
        f"try: {use}\n"
        "    except guard.ForkServerNotCleanError as error: print(error)\n"
        "    else: raise SystemExit('started')"
    )
    finished = program(LATE.format(use=refused), policy).ok()
    assert finished.out.startswith("[CFG302] this worker was forked by a forkserver in which CUDA is up")
    assert "wakes_at_fork" in finished.out or "use_driver.py" in finished.out
    assert "EOFError" not in finished.err


@pytest.mark.parametrize("policy", ["watch", "warn", "block"])
def test_a_pool_that_replaces_workers_meanwhile_does_not_hang(program: Program, policy: str) -> None:
    """Case 21, inside a forkserver: the pool's own thread can raise to nobody, so the worker goes on, armed."""
    code = """
    import sys
    import cuda_fork_guard as guard
    def work(number):
        return number
    if __name__ == "__main__":
        guard.install(sys.argv[1])
        with guard.get_context(preload=("wakes_at_fork",)).Pool(1, maxtasksperchild=1) as pool:
            print(pool.map(work, range(4), chunksize=1))
    """
    finished = program(code, policy).ok()
    assert finished.out == "[0, 1, 2, 3]\n" and "EOFError" not in finished.err


def test_such_a_worker_s_touch_is_reported(program: Program) -> None:
    code = """
    import cuda_fork_guard as guard
    import use_driver
    def work(number):
        return use_driver.wake() if number == 3 else 0
    if __name__ == "__main__":
        with guard.get_context(preload=("wakes_at_fork",)).Pool(1, maxtasksperchild=1) as pool:
            print(pool.map(work, range(4), chunksize=1)[:3])
    """
    finished = program(code).ok()
    assert finished.out == "[0, 0, 0]\n"
    assert finished.err.count("[CFG102]") == 1 and "use_driver.py:17 in wake" in finished.err


def test_the_server_has_the_program_s_policy(program: Program) -> None:
    code = """
    import cuda_fork_guard as guard
    def work(queue):
        queue.put(guard.status().policy)
    if __name__ == "__main__":
        guard.install("block")
        context = guard.get_context()
        queue = context.SimpleQueue()
        context.Process(target=work, args=(queue,)).start()
        print(queue.get())
    """
    assert program(code).ok().out == "block\n"
    assert program(code.replace('guard.install("block")', "pass"), CUDA_FORK_GUARD="warn").ok().out == "warn\n"


def test_a_worker_has_cuda_of_its_own(program: Program) -> None:
    """Also where the program's own CUDA is up, and where the main script wakes CUDA again in each worker."""
    code = """
    import sys
    import cuda_fork_guard as guard
    import use_driver
    assert use_driver.wake() == 0
    def work(queue):
        report = guard.verify_worker("fresh", device=0)
        queue.put((report.driver, report.inherited, report.pid))
    if __name__ == "__main__":
        guard.verify_worker("fresh", device=0)
        guard.install("block")
        context = guard.get_context()
        queue = context.SimpleQueue()
        workers = [context.Process(target=work, args=(queue,)) for _ in range(2)]
        for worker in workers: worker.start()
        told = [queue.get() for _ in workers]
        assert [state[:2] for state in told] == [("active", False)] * 2 and told[0][2] != told[1][2], told
        guard.verify_worker("fresh", device=0)
    """
    program(code).ok()


def test_case_13_an_idle_context_in_every_worker_is_found_with_its_line(program: Program) -> None:
    code = """
    import concurrent.futures
    import cuda_fork_guard as guard
    import use_driver
    use_driver.wake()  # at module level: every worker runs it again
    def work():
        guard.verify_worker("clean")
    if __name__ == "__main__":
        with concurrent.futures.ProcessPoolExecutor(1, mp_context=guard.get_context()) as pool:
            error = pool.submit(work).exception()
        assert type(error) is guard.WorkerNotCleanError, repr(error)
        print(error)
    """
    told = program(code).ok().out
    assert told.startswith("[CFG202]") and "use_driver.py:17" in told


def test_fork_in_a_worker_of_the_forkserver_is_judged_as_anywhere(program: Program) -> None:
    """Only the server's own fork can reach no caller: a worker's can be refused."""
    code = """
    import os
    import cuda_fork_guard as guard
    import use_driver
    def work():
        assert use_driver.wake() == 0
        try:
            os.fork()
        except guard.UnsafeForkError:
            raise SystemExit(7)
    if __name__ == "__main__":
        guard.install("block")
        worker = guard.get_context().Process(target=work)
        worker.start()
        worker.join()
        print(worker.exitcode)
    """
    assert program(code).ok().out == "7\n"


def test_a_worker_that_fails_in_its_own_code_does_so_as_ever(program: Program) -> None:
    code = """
    import cuda_fork_guard as guard
    def work():
        raise LookupError("own fault")
    if __name__ == "__main__":
        worker = guard.get_context().Process(target=work)
        worker.start()
        worker.join()
        print(worker.exitcode)
    """
    finished = program(code)
    assert finished.out == "1\n" and "LookupError: own fault" in finished.err and "CFG" not in finished.err

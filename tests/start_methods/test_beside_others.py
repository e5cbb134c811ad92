"""What the proved forkserver leaves alone, and what it leaves behind."""

from __future__ import annotations

import sys

import pytest
from support.program import Program

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the forkserver is proved on Linux only")


def test_the_plain_forkserver_of_others_is_left_alone(program: Program) -> None:
    code = """
    import multiprocessing, os
    import cuda_fork_guard as guard
    def work(queue):
        import sys
        queue.put((os.getppid(), "counted" in sys.modules))
    if __name__ == "__main__":
        plain = multiprocessing.get_context("forkserver")
        plain.set_forkserver_preload(["json"])
        ours = guard.get_context(preload=("counted",))
        queue = ours.SimpleQueue()
        servers = []
        for context in (ours, plain, ours, plain):
            worker = context.Process(target=work, args=(queue,))
            worker.start()
            servers.append(queue.get())
            worker.join()
        assert servers[0] == servers[2] and servers[1] == servers[3] and servers[0][0] != servers[1][0]
        assert [loaded for _, loaded in servers] == [True, False, True, False]
        try:
            ours.set_forkserver_preload(["csv"])
        except guard.StartMethodError as error:
            print(error)
    """
    assert "get_context(preload=…)" in program(code).ok().out


def test_starting_a_worker_fixes_no_default_and_the_worker_s_is_its_own(program: Program) -> None:
    """CPython's own contexts fix the program's, up to 3.13 (docs/start-methods.md)."""
    code = """
    import multiprocessing, os
    import cuda_fork_guard as guard
    def work(queue):
        queue.put((multiprocessing.get_context() is guard.get_context(preload=("json",)), os.getppid()))
        if multiprocessing.current_process().name == "first":
            nested = multiprocessing.Process(target=work, args=(queue,))
            nested.start()
            nested.join()
            assert nested.exitcode == 0
    if __name__ == "__main__":
        context = guard.get_context(preload=("json",))
        queue = context.SimpleQueue()
        worker = context.Process(target=work, args=(queue,), name="first")
        worker.start()
        worker.join()
        told = queue.get(), queue.get()
        assert told[0] == told[1] and told[0][0] is True, told
        print(worker.exitcode, multiprocessing.get_start_method(allow_none=True))
    """
    assert program(code).ok().out == "0 None\n"


def test_what_can_not_be_pickled_fails_as_ever_and_leaves_nothing(program: Program) -> None:
    code = """
    import cuda_fork_guard as guard
    import left
    if __name__ == "__main__":
        context = guard.get_context()
        context.Process(target=abs, args=(0,)).start()
        before = left.descriptors()
        for _ in range(3):
            try:
                context.Process(target=lambda: None).start()
            except Exception as error:
                told = type(error).__name__, "lambda" in str(error)
        assert left.descriptors() <= before, (before, left.descriptors())
        print(*told)
    """
    assert program(code).ok().out.endswith("True\n")


def test_a_large_argument_that_the_worker_never_reads(program: Program) -> None:
    """The refusal of a worker must not be drowned by the broken pipe that it leaves."""
    code = """
    import cuda_fork_guard as guard
    def work(data):
        raise SystemExit("started")
    if __name__ == "__main__":
        context = guard.get_context(preload=("wakes_at_fork",))
        context.Process(target=abs, args=(0,)).start()
        try:
            context.Process(target=work, args=(bytes(50_000_000),)).start()
        except guard.ForkServerNotCleanError as error:
            print("refused")
    """
    assert program(code).ok().out == "refused\n"


def test_many_workers_leave_nothing(program: Program) -> None:
    code = """
    import gc, resource
    import cuda_fork_guard as guard
    import left
    def some(context, count):
        for _ in range(count):
            worker = context.Process(target=abs, args=(0,))
            worker.start()
            worker.join()
            assert worker.exitcode == 0
        gc.collect()
    if __name__ == "__main__":
        context = guard.get_context(preload=("json",))
        some(context, 20)
        descriptors, memory = left.descriptors(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        some(context, 100)
        assert left.descriptors() == descriptors
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 1024, "KiB"
        assert len(left.children()) == 1, left.children()
    """
    program(code).ok()


def test_main_as_a_preload(program: Program) -> None:
    code = """
    import os
    import cuda_fork_guard as guard
    import counted  # once in the program, once in the server
    def work(queue):
        queue.put(counted.IMPORTED_BY == os.getppid())
    if __name__ == "__main__":
        context = guard.get_context(preload=("__main__",))
        queue = context.SimpleQueue()
        for _ in range(2):
            worker = context.Process(target=work, args=(queue,))
            worker.start()
            assert queue.get() is True
            worker.join()
            assert worker.exitcode == 0
        print(len(open(os.environ["COUNTED"]).readlines()))
    """
    assert program(code).ok().out == "2\n"


def test_threads_that_start_workers_together(program: Program) -> None:
    """As torch.multiprocessing does with TORCH_MP_PARALLEL_START; one server is made, and no verdict goes astray."""
    code = """
    import concurrent.futures, os
    import cuda_fork_guard as guard
    import left
    def work(queue):
        queue.put(os.getppid())
    def start(number):
        worker = context.Process(target=work, args=(queue,))
        worker.start()
        return worker
    if __name__ == "__main__":
        context = guard.get_context(preload=("json",))
        queue = context.SimpleQueue()
        with concurrent.futures.ThreadPoolExecutor(8) as threads:
            workers = list(threads.map(start, range(24)))
        assert len({queue.get() for _ in workers}) == 1
        for worker in workers: worker.join()
        assert {worker.exitcode for worker in workers} == {0} and len({worker.pid for worker in workers}) == 24
        assert len(left.children()) == 1
    """
    program(code).ok()


def test_a_program_that_reaps_every_child_itself(program: Program) -> None:
    code = """
    import os, signal
    import cuda_fork_guard as guard
    def work(queue):
        queue.put(os.getppid())
    if __name__ == "__main__":
        context = guard.get_context()
        queue = context.SimpleQueue()
        context.Process(target=work, args=(queue,)).start()
        server = queue.get()
        os.kill(server, signal.SIGKILL)
        while os.waitpid(-1, 0)[0] != server: pass
        worker = context.Process(target=work, args=(queue,))
        worker.start()
        assert queue.get() != server
        worker.join()
        print(worker.exitcode)
    """
    finished = program(code).ok()
    assert finished.out == "0\n" and "its exit status was collected elsewhere" in finished.err


@pytest.mark.parametrize("policy", ["off", "watch"])
def test_the_proof_does_not_depend_on_the_policy(program: Program, policy: str) -> None:
    code = """
    import sys
    import cuda_fork_guard as guard
    if __name__ == "__main__":
        guard.install(sys.argv[1])
        try:
            guard.get_context(preload=("wakes_cuda",)).Process(target=abs, args=(0,)).start()
        except guard.ForkServerNotCleanError:
            print("refused")
    """
    assert program(code, policy).ok().out == "refused\n"

"""The server is killed: workers that it made live on, the next start makes another one, and the program is told."""

from __future__ import annotations

import sys

import pytest
from support.program import Program

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the forkserver is proved on Linux only")


def test_a_worker_outlives_its_server(program: Program) -> None:
    code = """
    import os, signal, sys
    import cuda_fork_guard as guard
    import left
    def work(connection):
        connection.send(os.getppid())
        connection.recv()
        connection.send("done")
        sys.exit(3)
    if __name__ == "__main__":
        context = guard.get_context()
        ours, theirs = context.Pipe()
        worker = context.Process(target=work, args=(theirs,))
        worker.start()
        server = ours.recv()
        os.kill(server, signal.SIGKILL)
        os.waitid(os.P_PID, server, os.WEXITED | os.WNOWAIT)
        assert worker.is_alive() and worker.exitcode is None
        ours.send("go on")
        assert ours.recv() == "done"
        worker.join(20)
        assert not worker.is_alive()
        print(worker.exitcode)  # not 3: nobody is left who could know
    """
    assert program(code).ok().out == "255\n"


def test_a_worker_without_a_server_can_be_ended(program: Program) -> None:
    code = """
    import os, signal
    import cuda_fork_guard as guard
    def work(connection):
        connection.send(os.getppid())
        signal.pause()
    if __name__ == "__main__":
        context = guard.get_context()
        for end in ("terminate", "kill"):
            ours, theirs = context.Pipe()
            worker = context.Process(target=work, args=(theirs,))
            worker.start()
            os.kill(ours.recv(), signal.SIGKILL)
            getattr(worker, end)()
            worker.join(20)
            assert worker.exitcode == 255, worker.exitcode
            assert not os.path.exists(f"/proc/{worker.pid}/exe")
    """
    program(code, flags=("-W", "ignore")).ok()


def test_a_worker_killed_before_it_is_verified(program: Program) -> None:
    code = """
    import os
    import cuda_fork_guard as guard
    if __name__ == "__main__":
        open("worker_dies.py", "w").write(
            "import os, signal\\nos.register_at_fork(after_in_child=lambda: os.kill(os.getpid(), signal.SIGKILL))\\n"
        )
        try:
            guard.get_context(preload=("worker_dies",)).Process(target=abs, args=(0,)).start()
        except guard.StartMethodError as error:
            print(error)
    """
    told = program(code).ok().out
    assert told.startswith("[CFG301] the worker (pid ") and "nothing of its target ran" in told


@pytest.mark.parametrize("how", ["SIGKILL", "SIGTERM"])
def test_the_next_start_makes_another_server_and_says_so(program: Program, how: str) -> None:
    code = """
    import os, signal, sys, warnings
    import cuda_fork_guard as guard
    import left
    def work(queue):
        queue.put((os.getppid(), "counted" in sys.modules))
    def server_of_a_worker():
        queue = context.SimpleQueue()
        worker = context.Process(target=work, args=(queue,))
        worker.start()
        worker.join()
        assert worker.exitcode == 0
        return queue.get()
    if __name__ == "__main__":
        context = guard.get_context(preload=("counted",))
        first, loaded = server_of_a_worker()
        before = left.descriptors()
        os.kill(first, getattr(signal, sys.argv[1]))
        os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            second, loaded_too = server_of_a_worker()
        assert first != second and loaded and loaded_too
        assert left.descriptors() == before, (left.descriptors(), before)
        assert len(left.children()) == 1, left.children()
        (warning,) = told
        assert issubclass(warning.category, guard.CudaForkGuardWarning) and warning.filename.endswith("program.py")
        assert f"(pid {first}) is gone (killed by {sys.argv[1]})" in str(warning.message), warning.message
    """
    program(code, how).ok()


def test_also_under_warnings_as_errors_the_start_after_it_works(program: Program) -> None:
    code = """
    import os, signal
    import cuda_fork_guard as guard
    import left
    def work(queue):
        queue.put(os.getppid())
    if __name__ == "__main__":
        context = guard.get_context()
        queue = context.SimpleQueue()
        context.Process(target=work, args=(queue,)).start()
        server = queue.get()
        os.kill(server, signal.SIGKILL)
        os.waitid(os.P_PID, server, os.WEXITED | os.WNOWAIT)
        try:
            context.Process(target=work, args=(queue,)).start()
        except guard.CudaForkGuardWarning as warning:
            assert "is gone" in str(warning)
        else:
            raise SystemExit("no warning")
        context.Process(target=work, args=(queue,)).start()
        assert queue.get() != server
    """
    program(code, flags=("-W", "error::RuntimeWarning")).ok()


def test_a_server_killed_while_it_makes_a_worker(program: Program) -> None:
    """By its own fork hook: the request was taken, and is never answered."""
    code = """
    import os
    import cuda_fork_guard as guard
    import left
    if __name__ == "__main__":
        open("dies_at_fork.py", "w").write(
            "import os, signal\\n"
            "os.register_at_fork(before=lambda: os.path.exists('die') and os.kill(os.getpid(), signal.SIGKILL))\\n"
        )
        context = guard.get_context(preload=("dies_at_fork",))
        context.Process(target=abs, args=(0,)).start()
        before = left.descriptors()
        open("die", "w").close()
        for _ in range(2):
            try:
                context.Process(target=abs, args=(0,)).start()
            except guard.StartMethodError as error:
                told = str(error)
            else:
                raise SystemExit("started")
        os.remove("die")
        worker = context.Process(target=abs, args=(0,))
        worker.start()
        worker.join()
        print(worker.exitcode, told)
        worker.close()
        import gc; gc.collect()
        assert left.descriptors() <= before, (before, left.descriptors())
    """
    told = program(code, flags=("-W", "ignore")).ok().out
    assert told.startswith("0 [CFG301] the forkserver was gone before it had made this worker (killed by SIGKILL)"), (
        told
    )

"""The server is killed under pools, executors and a DataLoader."""

from __future__ import annotations

import sys

import pytest
from support.program import Program

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the forkserver is proved on Linux only")


def test_pools_and_executors_finish_their_work(program: Program) -> None:
    code = """
    import concurrent.futures, os, signal
    import cuda_fork_guard as guard
    def work(number):
        if number == 2:
            try:
                os.kill(os.getppid(), signal.SIGKILL)
            except ProcessLookupError:
                pass
        return number
    if __name__ == "__main__":
        context = guard.get_context()
        with context.Pool(2) as pool:
            assert pool.map(work, range(8), chunksize=1) == list(range(8))
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
            assert list(pool.map(work, range(8))) == list(range(8))
    """
    program(code, flags=("-W", "ignore::RuntimeWarning")).ok()


def test_a_pool_replaces_workers_after_it(program: Program) -> None:
    """In the pool's own thread, where even a warning that is an error must not end that thread."""
    code = """
    import os, signal
    import cuda_fork_guard as guard
    def work(number):
        if number == 2:
            os.kill(os.getppid(), signal.SIGKILL)
        return number
    if __name__ == "__main__":
        with guard.get_context().Pool(1, maxtasksperchild=1) as pool:
            print(pool.map(work, range(6), chunksize=1))
    """
    assert program(code, flags=("-W", "error::RuntimeWarning")).ok().out == "[0, 1, 2, 3, 4, 5]\n"


def test_a_nested_worker_makes_its_own_server_if_need_be(program: Program) -> None:
    code = """
    import os, signal
    import cuda_fork_guard as guard
    def inner(queue):
        queue.put(os.getppid())
    def outer(queue):
        os.kill(os.getppid(), signal.SIGKILL)
        context = guard.get_context()
        worker = context.Process(target=inner, args=(queue,))
        worker.start()
        worker.join()
        queue.put(worker.exitcode)
    if __name__ == "__main__":
        context = guard.get_context(preload=("json",))
        queue = context.SimpleQueue()
        worker = context.Process(target=outer, args=(queue,))
        worker.start()
        server = queue.get()
        assert queue.get() == 0
        worker.join(20)
        print(worker.exitcode)
    """
    assert program(code).ok().out == "255\n"


def test_a_data_loader_fails_with_the_reason_told_and_the_next_one_works(program: Program) -> None:
    """Torch's workers watch their parent process, which is the server, and end when it does."""
    pytest.importorskip("torch")
    code = """
    import os, signal
    import cuda_fork_guard as guard
    from torch.utils.data import DataLoader, Dataset
    class Pids(Dataset):
        def __len__(self): return 400
        def __getitem__(self, index): return os.getpid(), os.getppid()
    if __name__ == "__main__":
        context = guard.get_context(preload=("torch",))
        loader = DataLoader(Pids(), num_workers=2, persistent_workers=True, multiprocessing_context=context)
        (server,) = {int(pid) for batch in loader for pid in batch[1]}
        os.kill(server, signal.SIGKILL)
        try:
            for _ in loader: pass
        except (RuntimeError, OSError) as error:
            print("failed")
        del loader
        again = DataLoader(Pids(), num_workers=2, multiprocessing_context=context)
        print(len({int(pid) for batch in again for pid in batch[0]}))
    """
    finished = program(code)
    assert finished.code == 0 and finished.lines == ["failed", "2"], finished
    assert "(killed by SIGKILL)" in finished.err


def test_the_server_ends_with_the_program(program: Program) -> None:
    code = """
    import os
    import cuda_fork_guard as guard
    def work(queue):
        queue.put(os.getppid())
    if __name__ == "__main__":
        context = guard.get_context()
        queue = context.SimpleQueue()
        context.Process(target=work, args=(queue,)).start()
        pid = queue.get()
        watch = os.pidfd_open(pid)
        os.set_inheritable(watch, True)
        # Who waits for the server's end must outlive this program: its own next life.
        import sys
        waits = "import select, sys; print('ended' if select.select([int(sys.argv[1])], [], [], 20)[0] else 'alive')"
        os.execv(sys.executable, [sys.executable, "-c", waits, str(watch)])
    """
    assert program(code).ok().out == "ended\n"

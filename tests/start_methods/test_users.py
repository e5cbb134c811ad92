"""Everything that takes a multiprocessing context works with the proved one."""

from __future__ import annotations

import sys

import pytest
from support.program import Program

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the forkserver is proved on Linux only")


def test_preloads_are_imported_once_by_the_server_after_the_guard(program: Program) -> None:
    code = """
    import os
    import cuda_fork_guard as guard
    def work(queue):
        import sys
        loaded = list(sys.modules)
        guard_first = loaded.index("cuda_fork_guard") < loaded.index("counted")
        queue.put((sys.modules["counted"].IMPORTED_BY, os.getppid(), guard_first))
    if __name__ == "__main__":
        context = guard.get_context(preload=("counted", "json"))
        queue = context.SimpleQueue()
        workers = [context.Process(target=work, args=(queue,)) for _ in range(3)]
        for worker in workers: worker.start()
        told = {queue.get() for _ in workers}
        for worker in workers: worker.join()
        (imported_by, server, guard_first), = told
        assert imported_by == server != os.getpid() and guard_first
        assert open(os.environ["COUNTED"]).read() == f"{server}\\n"
    """
    program(code).ok()


def test_the_server_has_the_program_s_own_path(program: Program, tmp_path_factory: pytest.TempPathFactory) -> None:
    """CPython's own forkserver, up to 3.13, looks in the current folder only, and says nothing."""
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "only_here.py").write_text("VALUE = 42\n", encoding="utf-8")
    code = """
    import os, sys
    sys.path.insert(0, sys.argv[1])
    os.chdir("/")
    import cuda_fork_guard as guard
    def work(queue):
        queue.put(sys.modules["only_here"].VALUE)
    if __name__ == "__main__":
        context = guard.get_context(preload=("only_here",))
        queue = context.SimpleQueue()
        context.Process(target=work, args=(queue,)).start()
        print(queue.get())
    """
    assert program(code, str(folder)).ok().out == "42\n"


def test_process_exit_codes_subclasses_and_names(program: Program) -> None:
    code = """
    import os, signal, sys
    from multiprocessing.connection import wait
    import cuda_fork_guard as guard
    context = guard.get_context()
    class Named(context.Process):
        def __init__(self, code):
            super().__init__(name="named", daemon=True)
            self.code = code
        def run(self):
            assert self.name == "named" and self.daemon
            sys.exit(self.code)
    def killed():
        os.kill(os.getpid(), signal.SIGKILL)
    if __name__ == "__main__":
        workers = [Named(0), Named(7), context.Process(target=killed), context.Process(target=signal.pause)]
        for worker in workers: worker.start()
        assert all(isinstance(worker, context.Process) for worker in workers)
        assert workers[3].is_alive() and workers[3].exitcode is None
        workers[3].terminate()
        for worker in workers: assert wait([worker.sentinel], 20)
        for worker in workers: worker.join(20)
        print([worker.exitcode for worker in workers])
        for worker in workers: worker.close()
    """
    assert program(code).ok().out == "[0, 7, -9, -15]\n"


def test_pool(program: Program) -> None:
    code = """
    import os
    import cuda_fork_guard as guard
    def work(number):
        return number * number, os.getpid()
    if __name__ == "__main__":
        with guard.get_context().Pool(2, maxtasksperchild=1) as pool:
            results = pool.map(work, range(6), chunksize=1)
        assert [square for square, _ in results] == [0, 1, 4, 9, 16, 25]
        print(len({pid for _, pid in results}))
    """
    assert program(code).ok().out == "6\n"


def test_executor(program: Program) -> None:
    code = """
    import concurrent.futures, os
    import cuda_fork_guard as guard
    def work(number):
        if number == 3: guard.verify_worker("cpu-only", release_handles=False)
        if number == 4: raise guard.WorkerError("own")
        return number, os.getppid()
    if __name__ == "__main__":
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=guard.get_context()) as pool:
            assert len({server for _, server in pool.map(work, range(4))}) == 1
            print(repr(pool.submit(work, 4).exception()))
    """
    assert program(code).ok().out == "WorkerError('own')\n"


def test_queues_locks_and_shared_values(program: Program) -> None:
    code = """
    import cuda_fork_guard as guard
    def work(queue, lock, value, event, connection):
        with lock: value.value += 1
        queue.put(value.value)
        connection.send("sent")
        event.set()
    if __name__ == "__main__":
        context = guard.get_context()
        queue, lock, value, event = context.Queue(), context.Lock(), context.Value("i", 4), context.Event()
        ours, theirs = context.Pipe()
        worker = context.Process(target=work, args=(queue, lock, value, event, theirs))
        worker.start()
        assert event.wait(20) and queue.get() == 5 == value.value
        print(ours.recv())
        worker.join()
        assert worker.exitcode == 0
        with context.Manager() as manager:
            assert list(manager.list([1])) == [1]
    """
    assert program(code).ok().out == "sent\n"


def test_joblib(program: Program) -> None:
    pytest.importorskip("joblib")
    code = """
    import joblib, os
    import cuda_fork_guard as guard
    def work(number):
        return number, guard.verify_worker().start_method
    if __name__ == "__main__":
        results = joblib.Parallel(n_jobs=2, backend=guard.get_context())(joblib.delayed(work)(i) for i in range(4))
        assert results == [(number, "forkserver") for number in range(4)], results
    """
    program(code).ok()


def test_nested_workers_come_from_the_same_server(program: Program) -> None:
    code = """
    import os
    import cuda_fork_guard as guard
    def work(queue, depth, context):
        queue.put(os.getppid())
        if depth:
            same = guard.get_context(preload=("counted",))
            assert same.preload == context.preload
            worker = context.Process(target=work, args=(queue, depth - 1, same))
            worker.start()
            worker.join()
            assert worker.exitcode == 0
            try:
                guard.get_context(preload=("csv",))
            except guard.StartMethodError:
                pass
            else:
                raise SystemExit("accepted")
    if __name__ == "__main__":
        context = guard.get_context(preload=("counted",))
        queue = context.SimpleQueue()
        worker = context.Process(target=work, args=(queue, 2, context))
        worker.start()
        worker.join()
        assert worker.exitcode == 0
        assert len({queue.get() for _ in range(3)}) == 1
        assert len(open(os.environ["COUNTED"]).read().split()) == 1
    """
    program(code).ok()


def test_a_child_forked_by_hand_uses_its_parent_s_server(program: Program) -> None:
    code = """
    import os, sys
    import cuda_fork_guard as guard
    def work(queue):
        queue.put(os.getppid())
    def server_of_a_worker():
        context = guard.get_context()
        queue = context.SimpleQueue()
        worker = context.Process(target=work, args=(queue,))
        worker.start()
        worker.join()
        assert worker.exitcode == 0
        return queue.get()
    if __name__ == "__main__":
        server = server_of_a_worker()
        child = os.fork()
        if child == 0:
            os._exit(0 if server_of_a_worker() == server else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), server_of_a_worker() == server)
    """
    assert program(code).ok().out == "0 True\n"

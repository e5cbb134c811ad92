"""DataLoader and torch.multiprocessing with the proved forkserver."""

from __future__ import annotations

import sys

import pytest
from support.program import Program

pytest.importorskip("torch")
pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the forkserver is proved on Linux only"),
]


def test_persistent_workers(program: Program) -> None:
    code = """
    import os
    import cuda_fork_guard as guard
    import left
    from torch.utils.data import DataLoader, Dataset
    class Pids(Dataset):
        def __len__(self): return 8
        def __getitem__(self, index): return os.getpid(), os.getppid()
    def column(loader, which):
        return {int(number) for batch in loader for number in batch[which]}
    if __name__ == "__main__":
        context = guard.get_context(preload=("torch",))
        loader = DataLoader(Pids(), num_workers=2, persistent_workers=True, multiprocessing_context=context)
        first = column(loader, 0)
        assert len(first) == 2 and column(loader, 0) == first and column(loader, 0) == first
        (server,) = column(loader, 1)
        del loader
        again = DataLoader(Pids(), num_workers=2, multiprocessing_context=context)
        assert column(again, 1) == {server} and not column(again, 0) & first
        assert len(left.children()) == 1, left.children()
    """
    program(code).ok()


def test_tensors_through_its_queues(program: Program) -> None:
    code = """
    import cuda_fork_guard as guard
    import torch
    def work(source, sink):
        tensor = source.get()
        tensor += 1  # shared memory: the program sees it
        sink.put(tensor * 2)
        source.get()
    if __name__ == "__main__":
        context = guard.get_context(preload=("torch",))
        source, sink = context.Queue(), context.Queue()
        worker = context.Process(target=work, args=(source, sink))
        worker.start()
        tensor = torch.zeros(3).share_memory_()
        source.put(tensor)
        doubled = sink.get().clone()
        source.put("end")
        worker.join()
        print(tensor.tolist(), doubled.tolist(), worker.exitcode)
    """
    assert program(code).ok().out == "[1.0, 1.0, 1.0] [2.0, 2.0, 2.0] 0\n"


def test_torch_multiprocessing_by_default(program: Program) -> None:
    """start_processes takes a method's name only; None is the process default, and that can be the proved one."""
    code = """
    import cuda_fork_guard as guard
    import torch.multiprocessing
    def work(rank, queue):
        queue.put((rank, guard.verify_worker("clean").start_method, guard.status().pid))
    def fails(rank):
        guard.verify_worker("fresh", device=0)
    if __name__ == "__main__":
        assert guard.set_start_method(preload=("torch",)) == "forkserver"
        queue = torch.multiprocessing.SimpleQueue()
        torch.multiprocessing.start_processes(work, args=(queue,), nprocs=2, start_method=None)
        told = sorted(queue.get() for _ in range(2))
        assert [row[:2] for row in told] == [(0, "forkserver"), (1, "forkserver")], told
        with torch.multiprocessing.Pool(2) as pool:
            assert pool.map(abs, [-1, -2]) == [1, 2]
        try:
            torch.multiprocessing.start_processes(fails, nprocs=1, start_method=None)
        except torch.multiprocessing.ProcessRaisedException as error:
            print("DriverUnavailableError: [CFG204]" in str(error))
    """
    assert program(code).ok(riddles=True).out == "True\n"


def test_a_loader_by_default(program: Program) -> None:
    code = """
    import cuda_fork_guard as guard
    from torch.utils.data import DataLoader, Dataset
    class Clean(Dataset):
        def __len__(self): return 4
        def __getitem__(self, index): return guard.verify_worker("clean").start_method == "forkserver"
    if __name__ == "__main__":
        guard.set_start_method(preload=("torch",))
        print([bool(value) for batch in DataLoader(Clean(), num_workers=2) for value in batch])
    """
    assert program(code).ok().out == "[True, True, True, True]\n"


def test_a_loader_inside_a_worker(program: Program) -> None:
    code = """
    import cuda_fork_guard as guard
    from torch.utils.data import DataLoader
    def work(queue):
        context = guard.get_context(preload=("torch",))
        loader = DataLoader(list(range(4)), num_workers=2, multiprocessing_context=context)
        queue.put(sorted(int(number) for batch in loader for number in batch))
    if __name__ == "__main__":
        context = guard.get_context(preload=("torch",))
        queue = context.SimpleQueue()
        worker = context.Process(target=work, args=(queue,))
        worker.start()
        print(queue.get())
        worker.join()
        assert worker.exitcode == 0
    """
    assert program(code).ok().out == "[0, 1, 2, 3]\n"


def test_a_hundred_loaders_leave_nothing(program: Program) -> None:
    code = """
    import gc
    import cuda_fork_guard as guard
    import left
    from torch.utils.data import DataLoader
    def some(context, count):
        for _ in range(count):
            next(iter(DataLoader(list(range(8)), num_workers=2, multiprocessing_context=context)))
        gc.collect()
    if __name__ == "__main__":
        context = guard.get_context(preload=("torch",))
        some(context, 5)
        before = left.descriptors()
        some(context, 100)
        assert left.descriptors() == before, (before, left.descriptors())
        assert len(left.children()) == 1, left.children()
    """
    program(code, limit=110).ok()

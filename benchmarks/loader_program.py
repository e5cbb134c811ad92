"""An ordinary training script, run by start_methods.py as a program of its own: METHOD on the command line, orders on stdin.

Only where METHOD is ``proved`` is the guard imported at all.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
import time
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor(index)


class Verifications(Numbers):
    """Seconds that one verification of the worker takes: the first by hand after the automatic one, then more."""

    def __getitem__(self, index: int) -> torch.Tensor:
        import cuda_fork_guard

        begin = time.perf_counter()
        cuda_fork_guard.verify_worker("clean")
        return torch.tensor(time.perf_counter() - begin, dtype=torch.float64)


def context(method: str) -> Any:
    if method == "proved":
        import cuda_fork_guard

        return cuda_fork_guard.get_context(preload=("torch",))
    chosen = multiprocessing.get_context(method)
    if method == "forkserver":
        chosen.set_forkserver_preload(["torch"])
    return chosen


def first_batch(chosen: Any, workers: int) -> float:
    begin = time.perf_counter()
    batches = iter(DataLoader(Numbers(), batch_size=4, num_workers=workers, multiprocessing_context=chosen))
    next(batches)
    return time.perf_counter() - begin


def use() -> tuple[int, int, int]:
    """(KiB resident of this program and its server, descriptors of both, processes below this one)"""
    gc.collect()
    below = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _parent(pid) == os.getpid()]
    resident = descriptors = 0
    for pid in (os.getpid(), *below):
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            resident += int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
        descriptors += len(os.listdir(f"/proc/{pid}/fd"))
    return resident, descriptors, len(below)


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def main() -> None:
    chosen = context(sys.argv[1])
    for order in sys.stdin:
        what, _, number = order.strip().partition(" ")
        if what == "first":
            print(first_batch(chosen, int(number)), flush=True)
        elif what == "loaders":
            for _ in range(int(number)):
                first_batch(chosen, 2)
            print(*use(), flush=True)
        elif what == "verify":
            loader = DataLoader(Verifications(), batch_size=None, num_workers=1, multiprocessing_context=chosen)
            print(*(float(seconds) for seconds in loader), flush=True)


if __name__ == "__main__":
    main()

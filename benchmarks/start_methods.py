"""First batch of a DataLoader by start method, from the second loader on: python -m benchmarks.start_methods [--loaders 5]

torch is preloaded in both forkservers. Printed are medians in seconds and their ratios; no test depends on them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import time
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

import cuda_fork_guard


class Numbers(Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor(index)


def first_batch(context: Any, workers: int) -> float:
    loader = DataLoader(Numbers(), batch_size=4, num_workers=workers, multiprocessing_context=context)
    begin = time.perf_counter()
    batches = iter(loader)
    next(batches)
    took = time.perf_counter() - begin
    del batches
    return took


def contexts() -> dict[str, Any]:
    plain = multiprocessing.get_context("forkserver")
    plain.set_forkserver_preload(["torch"])
    return {
        "fork": "fork",
        "forkserver": plain,
        "proved forkserver": cuda_fork_guard.get_context(preload=("torch",)),
        "spawn": "spawn",
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.start_methods")
    parser.add_argument("--loaders", type=int, default=5, help="timed after one that is not (default: %(default)s)")
    options = parser.parse_args()
    methods = contexts()
    for workers in (2, 8):
        for context in methods.values():
            first_batch(context, workers)  # starts the servers and fills the caches
        times: dict[str, list[float]] = {name: [] for name in methods}
        for _ in range(options.loaders):
            for name, context in methods.items():  # in turn, so that noise hits all alike
                times[name].append(first_batch(context, workers))
        median = {name: statistics.median(values) for name, values in times.items()}
        ours = median["proved forkserver"]
        print(f"{workers} workers: " + ", ".join(f"{name} {seconds:.3f} s" for name, seconds in median.items()))
        print(
            f"  {median['spawn'] / ours:.1f} times faster than spawn (goal ≥ 25), "
            f"{ours / median['forkserver']:.2f} of the plain forkserver (goal ≤ 1.3), "
            f"{ours / median['fork']:.2f} of fork (goal ≤ 2)"
        )


if __name__ == "__main__":
    main()

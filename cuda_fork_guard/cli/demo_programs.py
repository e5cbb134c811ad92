"""The programs that ``demo`` runs: small, whole, and as a user would write them.

Each is written to a folder of its own as train.py, so that the guard's messages name its lines like any user's.
"""

from __future__ import annotations

# Stands for model.cuda(): torch's first CUDA call ends in the same place, and this needs neither torch nor a GPU.
_WAKE = """
import ctypes
import os
import sys

import cuda_fork_guard


def model_to_cuda():
    ctypes.CDLL("libcuda.so.1").cuInit(0)
"""

REFUSED = (
    _WAKE
    + """

def main():
    cuda_fork_guard.install("block")
    model_to_cuda()
    try:
        os.fork()
    except cuda_fork_guard.UnsafeForkError as error:
        print(error)
        return
    sys.exit("the fork was made")


main()
"""
)

TOUCHED = (
    _WAKE
    + """

def use_cuda():
    count = ctypes.c_int()
    return ctypes.CDLL("libcuda.so.1").cuDeviceGetCount(ctypes.byref(count))


def main():
    model_to_cuda()
    for work in (lambda: 0, use_cuda):
        pid = os.fork()
        if pid == 0:
            os._exit(work())
        _, status = os.waitpid(pid, 0)
        print(f"child ended with {os.waitstatus_to_exitcode(status)}", flush=True)
    print("recorded:", *(event.kind for event in cuda_fork_guard.events()))


main()
"""
)

LOADER = (
    _WAKE
    + """
import torch.utils.data


def main():
    model_to_cuda()
    loader = torch.utils.data.DataLoader(range(4), num_workers=2)
    print("watch:", sum(len(batch) for batch in loader), "items arrived, nothing was said")
    cuda_fork_guard.install("block")
    try:
        next(iter(loader))
    except cuda_fork_guard.UnsafeForkError as error:
        print("block:", error)
        return
    sys.exit("the loader started its workers")


main()
"""
)

WORKERS = """
import time

import cuda_fork_guard


def work(results, device):
    report = cuda_fork_guard.verify_worker("fresh", device=device)
    results.put(f"worker {report.pid}: {report.expect} on device {report.device}, inherited: {report.inherited}")


def run_workers(context, count):
    results = context.SimpleQueue()
    workers = [context.Process(target=work, args=(results, 0)) for _ in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return [results.get() for _ in workers]


def main():
    for method in ("spawn", "auto"):
        context = cuda_fork_guard.get_context(method)
        run_workers(context, 1)  # the first one of a forkserver waits until the server is there and proved clean
        began = time.perf_counter()
        lines = run_workers(context, 2)
        print(f"{context.get_start_method()}: two workers in {time.perf_counter() - began:.2f} s")
        for line in lines:
            print("  " + line)


if __name__ == "__main__":
    main()
"""

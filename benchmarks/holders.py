"""`cuda-fork-guard holders` against `fuser -v` on the device nodes, both as whole commands, in turn.

Needs root, unshare(1) and psmisc's fuser. Runs in a mount namespace of its own with devices named as NVIDIA's; 16 of
the processes hold them.

`workers`: forked from an interpreter with the usual libraries loaded, as DataLoader's or a server's are.
`programs`: as many separate programs, about the smallest there are (sleep).
`torch`: forked from an interpreter that has imported torch.
"""

from __future__ import annotations

import argparse
import importlib
import os
import resource
import signal
import statistics
import subprocess
import sys
import time

NODES = [f"/dev/{name}" for name in ("nvidiactl", "nvidia0", "nvidia-uvm")]
SET_UP = "mount -t tmpfs tmpfs /dev && mknod /dev/null c 1 3 && mknod /dev/urandom c 1 9" + "".join(
    f" && mknod {node} c 1 3" for node in NODES
)
HOLDERS = 16


def worker(holds: bool) -> int:
    pid = os.fork()
    if pid == 0:
        if holds:
            for node in NODES:
                os.open(node, os.O_RDWR)
        while True:
            signal.pause()
    return pid


def program(holds: bool) -> int:
    handles = [os.open(node, os.O_RDWR) for node in NODES] if holds else []
    pid = subprocess.Popen(["sleep", "900"], pass_fds=handles).pid
    for handle in handles:
        os.close(handle)
    return pid


def seconds(command: list[str]) -> tuple[float, float]:
    """Elapsed, and of the processors: the latter bears other work on the machine better."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    took = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode in (0, 1), done
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--processes", type=int, default=2000)
    parser.add_argument("--population", choices=["workers", "programs", "torch"], default="workers")
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    if "CFG_BENCH_INSIDE" not in os.environ:
        command = ["unshare", "--mount", "sh", "-c", f'{SET_UP} && exec "$0" "$@"', sys.executable, *sys.argv]
        sys.exit(subprocess.run(command, env={**os.environ, "CFG_BENCH_INSIDE": "1"}, check=False).returncode)

    loaded = {"workers": ["ssl", "sqlite3", "ctypes", "json", "asyncio"], "programs": [], "torch": ["torch"]}
    for name in loaded[args.population]:
        importlib.import_module(name)
    make = program if args.population == "programs" else worker
    pids: list[int] = []
    try:
        for number in range(args.processes):
            pids.append(make(number < HOLDERS))
        ours = [sys.executable, "-m", "cuda_fork_guard", "holders", "--json"]
        seconds(ours)  # writes the compiled modules, as an installation has them
        times: dict[str, list[tuple[float, float]]] = {"fuser -v": [], "fuser -v again": [], "holders": []}
        for _ in range(args.rounds):
            times["fuser -v"].append(seconds(["fuser", "-v", *NODES]))
            times["holders"].append(seconds(ours))
            times["fuser -v again"].append(seconds(["fuser", "-v", *NODES]))
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        for pid in pids:
            os.waitpid(pid, 0)
    print(f"{args.processes} {args.population}, {HOLDERS} of them hold devices; medians of {args.rounds}")
    medians = {name: [statistics.median(column) for column in zip(*rows, strict=True)] for name, rows in times.items()}
    for name, (elapsed, processor) in medians.items():
        base = medians["fuser -v"]
        print(
            f"  {name:16} {elapsed * 1e3:8.1f} ms elapsed  {processor * 1e3:8.1f} ms processor"
            f"   fuser / it = {base[0] / elapsed:5.2f}  {base[1] / processor:5.2f}"
        )


if __name__ == "__main__":
    main()

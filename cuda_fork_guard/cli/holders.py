"""`holders`: which processes hold CUDA devices, whether by themselves or by inheritance. Looks, and touches nothing."""

from __future__ import annotations

import argparse
import sys

from cuda_fork_guard.cli import exits
from cuda_fork_guard.cli.blind_spots import blind_spots, own_pid_namespace, sees_all_pids
from cuda_fork_guard.cli.gpu_memory import gpu_memory
from cuda_fork_guard.cli.holder_rows import gone_of, rows_of
from cuda_fork_guard.cli.holder_views import as_dict, as_text
from cuda_fork_guard.cli.process_scan import scan

SUMMARY = "processes that hold CUDA devices: own or inherited, orphaned, memory; never kills"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="for a program to read")


def run(args: argparse.Namespace, proc: str = "/proc") -> int:
    if sys.platform != "linux":
        return _nothing_to_see(args, f"only Linux shows who holds a device, this is {sys.platform}")
    try:
        seen = scan(proc)
    except OSError as error:
        return _nothing_to_see(args, f"{proc} can't be read: {error.strerror}")
    if own_pid_namespace(proc) is None:
        return _nothing_to_see(args, f"{proc} does not even show this process: it is not mounted")
    # After the scan: NVML opens the devices too, and must not be found by it.
    memory = gpu_memory()
    rows = rows_of(seen.processes, memory.charges, proc, own_pid_namespace(proc))
    gone = gone_of(rows, memory.charges, proc)
    reasons = blind_spots(proc, seen.unreadable)
    if args.json:
        import json

        print(json.dumps(as_dict(rows, gone, memory.reason, reasons, sees_all_pids=sees_all_pids(proc)), indent=2))
    else:
        lines = as_text(rows, gone, sees_all_pids=sees_all_pids(proc))
        if lines:
            print("\n".join(lines))
        else:
            _say(f"no process holds a CUDA device ({seen.looked_at} looked at)")
        if lines and memory.reason is not None:
            _say(f"memory not known: {memory.reason}")
    for reason in reasons:
        _say(f"not everything was seen: {reason}")
    return exits.verdict(found=bool(rows or gone), complete=not reasons)


def _nothing_to_see(args: argparse.Namespace, reason: str) -> int:
    if args.json:
        import json

        print(json.dumps(as_dict([], [], None, [reason], sees_all_pids=False), indent=2))
    _say(reason)
    return exits.NO_VERDICT


def _say(words: str) -> None:
    print(f"cuda-fork-guard holders: {words}", file=sys.stderr)

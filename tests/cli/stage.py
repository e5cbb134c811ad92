"""For programs that run in `private_dev`: makes processes in the states `holders` tells apart, and asks it.

Processes are the machine's, so `holders` sees those of other tests that run beside: only this program's own are judged.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

UVM, CTL, GPU = "/dev/nvidia-uvm", "/dev/nvidiactl", "/dev/nvidia0"

_started: list[int] = []


def hold(*paths: str) -> list[int]:
    return [os.open(path, os.O_RDWR | os.O_CLOEXEC) for path in paths]


def fork(body: Callable[[], None] = lambda: None) -> int:
    """A child that does `body` and then waits to be killed; returns once the body is done."""
    ready, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ready)
        body()
        os.write(tell, b"x")
        os.close(tell)
        while True:
            signal.pause()
    os.close(tell)
    _started.append(pid)
    assert os.read(ready, 1) == b"x", "the child died in its body"
    os.close(ready)
    return pid


def orphan(body: Callable[[], None] = lambda: None) -> int:
    """A grandchild whose parent has ended."""
    said, say = os.pipe()
    middle = os.fork()
    if middle == 0:
        os.write(say, str(fork(body)).encode())
        os._exit(0)
    os.waitpid(middle, 0)
    pid = int(os.read(said, 20))
    os.close(said)
    os.close(say)
    _started.append(pid)
    return pid


def started(pid: int) -> int:
    _started.append(pid)
    return pid


def holders(*arguments: str, code: int | None = None, prefix: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*prefix, sys.executable, "-m", "cuda_fork_guard", "holders", *arguments],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert "Traceback" not in done.stderr, done.stderr
    if code is not None:
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done


def report() -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(holders("--json").stdout)
    assert answer["schema"] == 1
    return answer


def rows() -> dict[int, dict[str, Any]]:
    return {row["pid"]: row for row in report()["holders"]}


@contextlib.contextmanager
def stage() -> Iterator[None]:
    try:
        yield
    finally:
        for pid in _started:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    print("played")

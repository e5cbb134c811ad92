"""Forks from many threads beside everything else that goes on in a process. Bounded in time; every child comes back."""

from __future__ import annotations

import pytest
from support.child import environment, python

PRELUDE = """
import ctypes, faulthandler, os, signal, sys, threading, time
import cuda_fork_guard as guard
from cuda_fork_guard.testing import simulated_cuda
faulthandler.dump_traceback_later(50, exit=True)
simulated = simulated_cuda(state=os.environ.get("STATE", "initialized"))
simulated.__enter__()
END = time.monotonic() + 3
made = []
def child(work):
    # A child that hangs is killed by its own alarm, and fails the test.
    signal.alarm(20)
    try:
        work()
        os._exit(0)
    finally:
        os._exit(1)
def forking(work, bound=10**9):
    count = 0
    while time.monotonic() < END and count < bound:
        if (pid := os.fork()) == 0:
            child(work)
        count += 1
        assert os.waitpid(pid, 0)[1] == 0, "a child did not come back"
    made.append(count)
def run(*bodies):
    failed = []
    def guarded(body):
        try:
            body()
        except BaseException as error:
            failed.append(error)
            raise
    threads = [threading.Thread(target=guarded, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed
"""

QUIET = ("-W", "ignore::DeprecationWarning")  # Python's own on forks of threaded processes (3.12)


def test_many_threads_fork_some_of_them_inside_allow_fork() -> None:
    code = f"""{PRELUDE}
allowed = []
def intended():
    count = 0
    while time.monotonic() < END:
        with guard.allow_fork("stress"):
            if (pid := os.fork()) == 0:
                child(lambda: guard.status().inherited or 1 / 0)
        count += 1
        assert os.waitpid(pid, 0)[1] == 0
    allowed.append(count)
def refused():
    with_block = 0
    while time.monotonic() < END:
        guard.check_fork()
        guard.status()
        guard.events()
bodies = [lambda: forking(lambda: guard.status().inherited or 1 / 0)] * 4 + [intended] * 3 + [refused]
run(*bodies)
counts = guard.events().counts
assert counts["fork"] == sum(made) > 0 and counts["allowed"] == sum(allowed) > 0, (counts, made, allowed)
for event in guard.events():
    if event.kind == "allowed":
        assert "in intended  (os.fork" in event.text and "allowed: stress" in event.text, event
    elif event.kind == "fork":
        assert "in forking  (os.fork" in event.text, event
"""
    python(code, flags=QUIET, limit=55).ok()


def test_children_can_ask_the_loader_whatever_other_threads_did_at_the_fork() -> None:
    """The loader's own locks are not all freed in a child: a thread that asked it at the moment of the fork must not leave
    one behind. Libraries come and go meanwhile, so that every question has to ask it."""
    code = f"""{PRELUDE}
import _ctypes
def ask():
    while time.monotonic() < END:
        guard.status()
def load():
    while time.monotonic() < END:
        _ctypes.dlclose(_ctypes.dlopen("libm.so.6", 2))
def questions():
    guard.status()
    guard.verify_worker("cpu-only") if guard.status().inherited else guard.verify_worker()
    if (pid := os.fork()) == 0:
        os._exit(0)
    os.waitpid(pid, 0)
run(ask, load, lambda: forking(questions), lambda: forking(questions))
assert sum(made) > 10
"""
    python(code, flags=QUIET, limit=55, env=environment(STATE="loaded")).ok()


def test_native_forks_beside_python_s() -> None:
    code = f"""{PRELUDE}
libc = ctypes.CDLL(None)  # without the GIL
libc.fork.restype = ctypes.c_int
native = []
# In the child of a native fork Python's locks are as they were: only C may run there.
def natively():
    count = 0
    while time.monotonic() < END:
        if (pid := spawn()) > 0:
            count += 1
            assert os.waitpid(pid, 0)[1] == 0
    native.append(count)
spawn = ctypes.CDLL(sys.argv[1]).fork_and_exit
run(natively, natively, lambda: forking(guard.events), lambda: forking(guard.events))
counts = guard.events().counts
assert counts["fork"] == sum(native) + sum(made), (counts, native, made)
kinds = {{"native" if "native fork()" in event.text else "python" for event in guard.events() if event.kind == "fork"}}
assert kinds == {{"native", "python"}}, kinds
for event in guard.events():
    if event.kind == "fork" and "native" not in event.text:
        assert "in forking  (os.fork" in event.text, event
"""
    pytest.importorskip("ctypes")
    import subprocess
    from pathlib import Path
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        source = Path(folder, "native.c")
        source.write_text(
            "#include <unistd.h>\nint fork_and_exit(void) { int pid = fork(); if (pid == 0) _exit(0); return pid; }\n"
        )
        library = Path(folder, "native.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
        python(code, str(library), flags=QUIET, limit=55).ok()


@pytest.mark.parametrize("policy", ["warn", "block"])
def test_refusals_and_warnings_from_many_threads(policy: str) -> None:
    code = f"""{PRELUDE}
import warnings
warnings.simplefilter("ignore", guard.UnsafeForkWarning)
refused = []
def body():
    count = 0
    for _ in range(150):
        try:
            pid = os.fork()
        except guard.UnsafeForkError as error:
            assert "in body  (os.fork)" in str(error), error
            count += 1
            continue
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
    refused.append(count)
run(*[body] * 6)
fork = guard.events().counts["fork"]
assert (sum(refused), fork) == ((900, 0) if guard.status().policy == "block" else (0, 900)), (refused, fork)
"""
    python(code, flags=QUIET, limit=55, env=environment(CUDA_FORK_GUARD=policy)).ok()

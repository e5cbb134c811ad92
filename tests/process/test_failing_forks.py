"""Forks that fail, from any thread, nested, at shutdown: no hang, no crash, no lost child, no event that never was."""

from __future__ import annotations

import os
import pwd
import sys

import pytest
from support.child import environment, python
from support.compiled import Compile

UP = """
import ctypes, os, sys, threading
import cuda_fork_guard as guard
from cuda_fork_guard.testing import simulated_cuda
simulated = simulated_cuda()
simulated.__enter__()
def forks():
    return [event.text for event in guard.events() if event.kind == "fork"]
def fork():
    if (pid := os.fork()) == 0:
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
"""


@pytest.mark.parametrize("policy", ["watch", "warn"])
def test_a_fork_that_fails_before_it_is_made(compiled: Compile, policy: str) -> None:
    """The prepare and parent handlers don't even run: the intention must not pass for a later native fork's."""
    code = f"""{UP}
import errno
os.environ["FAIL_FORK"] = "1"
for _ in range(3):
    try:
        os.fork()
    except OSError as error:
        assert error.errno == errno.EAGAIN
    else:
        os._exit(1)
assert forks() == []
del os.environ["FAIL_FORK"]
if (pid := ctypes.CDLL(None).fork()) == 0:
    os._exit(0)
os.waitpid(pid, 0)
fork()
first, second = forks()
assert "native fork()" in first and "in fork  (os.fork" in second, forks()
"""
    preload = compiled("failing_fork.c", soname="failing_fork.so")
    env = environment(LD_PRELOAD=str(preload), CUDA_FORK_GUARD=policy)
    python(code, env=env, flags=("-W", "ignore::RuntimeWarning")).ok()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can take on a user whose process limit is reached")
def test_a_fork_that_the_kernel_refuses() -> None:
    """The handlers run, and glibc calls the parent's after a failure too."""
    nobody = pwd.getpwnam("nobody").pw_uid
    code = f"""{UP}
import resource
resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
os.setresuid({nobody}, {nobody}, {nobody})
for _ in range(40):  # more than there is room for intentions
    try:
        os.fork()
    except BlockingIOError:
        continue
    os._exit(1)
assert forks() == [] and guard.status().inherited is False
assert not guard.status().fork_is_safe
with guard.policy("block"):
    try:
        os.fork()
    except guard.UnsafeForkError:
        print("refused")
"""
    assert python(code).ok().out == "refused\n"


def test_intentions_are_not_used_up() -> None:
    code = f"""{UP}
for _ in range(100):
    fork()
assert guard.events().counts["fork"] == 100
assert all("in fork  (os.fork" in text for text in forks())
"""
    python(code).ok()


def test_a_fork_in_a_fork_in_a_fork() -> None:
    code = f"""{UP}
import signal
signal.alarm(30)
def descend(depth):
    status = guard.status()
    assert (status.inherited, status.driver, status.fork_is_safe) == (depth > 0 or False, "inherited" if depth else
            "initialized", False), status
    assert status.pid == os.getpid()
    if depth == 12:
        os._exit(depth)
    if (pid := os.fork()) == 0:
        descend(depth + 1)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if depth:
        os._exit(code)
    return code
assert descend(0) == 12
assert guard.events().counts["fork"] == 12
parents = [event.pid for event in guard.events() if event.kind == "fork"]
assert len(set(parents)) == 12 and parents[0] == os.getpid()
"""
    python(code).ok()


def test_a_fork_from_another_thread_with_its_own_site() -> None:
    code = f"""{UP}
def elsewhere():
    fork()
thread = threading.Thread(target=elsewhere)
thread.start(); thread.join()
with guard.policy("block"):
    codes = []
    def refused():
        try:
            os.fork()
        except guard.UnsafeForkError as error:
            codes.append("in refused  (os.fork)" in str(error))
    thread = threading.Thread(target=refused)
    thread.start(); thread.join()
assert codes == [True] and len(forks()) == 1 and "in fork" in forks()[0]
"""
    python(code, flags=("-W", "ignore::DeprecationWarning")).ok()


def test_a_fork_from_a_thread_python_never_started() -> None:
    code = f"""{UP}
import ctypes
libc = ctypes.CDLL(None)
done = []
START = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
def body(_):
    fork()
    done.append(1)
body = START(body)
thread = ctypes.c_ulong()
assert libc.pthread_create(ctypes.byref(thread), None, body, None) == 0
libc.pthread_join(thread, None)
assert done == [1] and len(forks()) == 1
"""
    python(code, flags=("-W", "ignore::DeprecationWarning")).ok()


AT_EXIT = f"""{UP}
import atexit
class Last:
    # What it needs is its own: its module's globals are None by then.
    def __del__(self, fork=os.fork, exit=os._exit, wait=os.waitpid, write=os.write, error=RuntimeError, str=str):
        try:
            pid = fork()
        except error as refusal:
            write(2, str(refusal).encode())
            return
        if pid == 0:
            exit(0)
        wait(pid, 0)
        write(2, b"forked in __del__\\n")
"""


@pytest.mark.parametrize("policy", ["watch", "warn", "block"])
def test_forks_in_atexit_functions(policy: str) -> None:
    code = f"""{AT_EXIT}
def last():
    try:
        fork()
    except guard.UnsafeForkError:
        print("refused")
    except RuntimeError as error:
        print(error)
    else:
        print(guard.events().counts["fork"])
atexit.register(last)
"""
    finished = python(code, env=environment(CUDA_FORK_GUARD=policy), limit=20).ok()
    if finished.out.startswith("can't fork at interpreter shutdown"):  # Python's own rule: in 3.12 only
        assert sys.version_info[:2] == (3, 12) and finished.err == ""
        return
    assert finished.out == ("refused\n" if policy == "block" else "1\n")
    assert ("UnsafeForkWarning" in finished.err) == (policy == "warn")


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python itself refuses such forks from 3.12")
def test_an_allowed_fork_at_shutdown_is_allowed() -> None:
    code = f"""{AT_EXIT}
sys.keep = Last()
allowed = guard.allow_fork("to say goodbye")
allowed.__enter__()
"""
    assert python(code, env=environment(CUDA_FORK_GUARD="block")).ok().err == "forked in __del__\n"


@pytest.mark.parametrize("policy", ["off", "watch", "warn", "block"])
def test_forks_in_destructors_at_shutdown(policy: str) -> None:
    code = f"""{AT_EXIT}
sys.keep = Last()
"""
    finished = python(code, env=environment(CUDA_FORK_GUARD=policy), limit=20).ok()
    if sys.version_info >= (3, 12):
        assert "can't fork at interpreter shutdown" in finished.err  # by Python itself
    elif policy == "block":
        assert "[CFG101] fork refused" in finished.err and "at shutdown" in finished.err
    else:
        assert finished.err == "forked in __del__\n"


def test_a_child_may_end_in_every_way() -> None:
    code = f"""{UP}
for end in ("os._exit(3)", "sys.exit(3)", "raise SystemExit(3)", "os.kill(os.getpid(), 9)", "os.abort()"):
    if (pid := os.fork()) == 0:
        import resource
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        simulated = None
        exec(end)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code == {{"os.kill(os.getpid(), 9)": -9, "os.abort()": -6}}.get(end, 3), (end, code)
assert guard.events().counts["fork"] == 5 and guard.events().counts["touch"] == 0
"""
    python(code, env=environment(PYTHONFAULTHANDLER=None)).ok()

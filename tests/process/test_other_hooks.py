"""Audit hooks of others: one that refuses ours, one that refuses forks, one that meddles."""

from __future__ import annotations

import pytest
from support.child import environment, python

FORK = """
def fork():
    if (pid := os.fork()) == 0:
        os._exit(0)
    os.waitpid(pid, 0)
"""


@pytest.mark.parametrize("error", ["RuntimeError", "SystemExit", "KeyboardInterrupt"])
def test_a_hook_that_refuses_ours_is_told(error: str) -> None:
    """PySys_AddAuditHook succeeds all the same: only an event that comes through proves that the hook is there."""
    code = f"""
import os, sys
def veto(event, args):
    if event == "sys.addaudithook":
        raise {error}("no more hooks")
sys.addaudithook(veto)
import cuda_fork_guard as guard
from cuda_fork_guard.testing import simulated_cuda
{FORK}
guard.install("block")
assert any("Python's forks aren't seen" in reason for reason in guard.status().reasons), guard.status()
with simulated_cuda():
    fork()  # can't be refused, and is known to the child
    assert guard.events().counts["fork"] == 1
    try:
        guard.check_fork()
    except guard.UnsafeForkError:
        print("refused")
"""
    assert python(code).ok().out == "refused\n"


def test_a_later_install_tries_again() -> None:
    code = f"""
import os, sys
strict = True
def veto(event, args):
    if strict and event == "sys.addaudithook":
        raise RuntimeError("not yet")
sys.addaudithook(veto)
import cuda_fork_guard as guard
from cuda_fork_guard.testing import simulated_cuda
{FORK}
strict = False
guard.install("block")
guard.install()
assert not any("forks aren't seen" in reason for reason in guard.status().reasons), guard.status()
with simulated_cuda():
    try:
        os.fork()
    except guard.UnsafeForkError:
        print("refused")
    with guard.policy("watch"):
        fork()
    assert guard.events().counts["fork"] == 1
"""
    assert python(code).ok().out == "refused\n"


def test_a_fork_that_another_hook_refuses_is_no_fork() -> None:
    code = f"""
import ctypes, os, sys
import cuda_fork_guard as guard
from cuda_fork_guard.testing import simulated_cuda
{FORK}
strict = True
def veto(event, args):
    if strict and event == "os.fork":
        raise PermissionError("no forks here")
sys.addaudithook(veto)
with simulated_cuda():
    try:
        fork()
    except PermissionError:
        pass
    assert guard.events().counts["fork"] == 0
    # Its intention must not pass for that of the next native fork.
    if (pid := ctypes.CDLL(None).fork()) == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    strict = False
    fork()
    texts = [event.text for event in guard.events() if event.kind == "fork"]
    assert len(texts) == 2 and "native fork()" in texts[0] and "in fork  (os.fork" in texts[1], texts
"""
    python(code).ok()


def test_a_hook_that_raises_at_every_event_it_does_not_know() -> None:
    code = f"""
import os, sys
KNOWN = ("import", "open", "compile", "exec", "marshal.loads", "os.", "sys._getframe", "object.", "ctypes.", "code.",
         "subprocess.", "glob.", "builtins.", "sys.", "cpython.", "gc.", "array.", "time.", "mmap.", "fcntl.")
strange = []
def strict(event, args):
    if not event.startswith(KNOWN):
        strange.append(event)
        raise RuntimeError(event)
sys.addaudithook(strict)
import cuda_fork_guard as guard
from cuda_fork_guard.testing import simulated_cuda
{FORK}
assert not any("forks aren't seen" in reason for reason in guard.status().reasons), guard.status()
with simulated_cuda():
    fork()
assert guard.events().counts["fork"] == 1
assert set(strange) <= {{"cuda_fork_guard.probe"}}, strange
"""
    python(code).ok()


def test_a_hook_that_itself_forks_and_asks() -> None:
    code = f"""
import os, sys
import cuda_fork_guard as guard
from cuda_fork_guard.testing import simulated_cuda
{FORK}
inside = []
def meddle(event, args):
    if event == "os.fork" and not inside:
        inside.append(event)
        fork()
        guard.status()
        inside.clear()
sys.addaudithook(meddle)
with simulated_cuda():
    fork()
    with guard.policy("block"):
        try:
            fork()
        except guard.UnsafeForkError:
            print("refused")
    events = [event.text for event in guard.events() if event.kind == "fork"]
    assert len(events) == 2 == guard.events().counts["fork"], events
"""
    assert python(code).ok().out == "refused\n"


@pytest.mark.parametrize("policy", ["watch", "block"])
def test_before_fork_hooks_that_fork_or_fail(policy: str) -> None:
    """They run after the decision. Python prints what they raise, and goes on."""
    code = f"""
import os, sys
import cuda_fork_guard as guard
from cuda_fork_guard.testing import simulated_cuda
{FORK}
def failing():
    raise ValueError("from a before hook")
os.register_at_fork(before=failing)
with simulated_cuda():
    try:
        fork()
    except guard.UnsafeForkError:
        print("refused")
    print(guard.events().counts["fork"])
"""
    finished = python(code, env=environment(CUDA_FORK_GUARD=policy)).ok(riddles=True)
    if policy == "block":
        assert finished.out == "refused\n0\n" and finished.err == ""
    else:
        assert finished.out == "1\n" and "from a before hook" in finished.err

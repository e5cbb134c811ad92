"""Events of a whole family in one piece of shared memory: exact counts, bounded texts, and who sees what."""

from __future__ import annotations

from support.child import python

UP = """
import json, os, signal, sys
import cuda_fork_guard as guard
from cuda_fork_guard.testing import simulated_cuda
simulated = simulated_cuda()
simulated.__enter__()
def forks():
    return [event for event in guard.events() if event.kind == "fork"]
"""


def test_thousands_of_forks_are_counted_exactly_and_256_texts_are_kept() -> None:
    code = f"""{UP}
for number in range(2000):
    if (pid := os.fork()) == 0:
        os._exit(0)
    assert os.waitpid(pid, 0) == (pid, 0)
events = guard.events()
assert events.counts["fork"] == 2000 and events.counts["origin"] == 1, events.counts
assert len(events) == 256 and events.dropped == 2001 - 256, (len(events), events.dropped)
assert all(event.kind == "fork" and event.pid == os.getpid() for event in events)
numbers = [int(event.text.split()[2].rstrip(":")) for event in events]
assert numbers[-1] == pid and len(set(numbers)) == 256
assert [event.time for event in events] == sorted(event.time for event in events)
"""
    python(code, limit=100).ok()


def test_a_child_that_is_killed_at_once_was_seen() -> None:
    code = f"""{UP}
for number in range(200):
    # Killed by itself: nothing of Python's runs after the fork but this.
    if (pid := os.fork()) == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -9
    assert guard.events().counts["fork"] == number + 1
    assert f"forked pid {{pid}}:" in forks()[-1].text
"""
    python(code).ok()


def test_a_child_killed_by_its_parent_is_counted_at_most_once() -> None:
    """Whether it got as far as its handler is a race: but never a half-written event, and never two."""
    code = f"""{UP}
for number in range(300):
    if (pid := os.fork()) == 0:
        while True:
            pass
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
events = guard.events()
assert events.counts["fork"] <= 300
assert len(events) + events.dropped == sum(events.counts.values())
for event in forks():
    assert event.text.startswith("forked pid ") and "(os.fork, from pid" in event.text, event
"""
    python(code).ok()


def test_who_sees_what() -> None:
    code = f"""{UP}
def child_of(work):
    read, write = os.pipe()
    if (pid := os.fork()) == 0:
        os.close(read)
        try:
            os.write(write, json.dumps(work()).encode())
            os._exit(0)
        finally:
            os._exit(1)
    os.close(write)
    with open(read) as pipe:
        answer = json.loads(pipe.read())
    assert os.waitpid(pid, 0)[1] == 0
    return answer
def seen():
    events = guard.events()
    return [[event.kind, event.pid] for event in events], events.counts["fork"], os.getpid()
def child():
    before = seen()
    grandchild = child_of(seen)
    return before, grandchild, seen()
before, grandchild, after = child_of(child)
sibling = child_of(seen)
everything = seen()
root, pid = os.getpid(), after[2]
# A child sees nothing of what happened before or beside it, and everything below it.
assert before[0] == [] and before[1] == 0, before
assert grandchild[0] == [] and sibling[0] == [], (grandchild, sibling)
assert after[0] == [["fork", pid]] and after[1] == 1, after
assert everything[0] == [["origin", root], ["fork", root], ["fork", pid], ["fork", root]], everything
assert everything[1] == 3
"""
    python(code).ok()


def test_reading_while_others_write() -> None:
    """dropped is never negative, kept and dropped never more than there were, no text is torn."""
    code = f"""{UP}
writers = []
for _ in range(2):
    with guard.allow_fork("a writer"):
        pid = os.fork()
    if pid == 0:
        for number in range(400):
            if (child := os.fork()) == 0:
                os._exit(0)
            os.waitpid(child, 0)
        os._exit(0)
    writers.append(pid)
last = 0
while writers:
    events = guard.events()
    total = sum(events.counts.values())
    assert 0 <= events.dropped and len(events) <= 256 and len(events) + events.dropped == total, events.counts
    assert events.counts["fork"] >= last
    last = events.counts["fork"]
    for event in events:
        assert event.kind in ("origin", "fork", "allowed")
        assert event.kind == "origin" or "in <module>  (os.fork, from pid" in event.text, event
    pid, status = os.waitpid(writers[0], os.WNOHANG)
    if pid:
        assert status == 0
        writers.pop(0)
assert guard.events().counts["fork"] == 800
"""
    python(code).ok()


def test_events_of_a_program_without_cuda() -> None:
    code = """
    import os
    import cuda_fork_guard as guard
    for _ in range(5):
        if (pid := os.fork()) == 0:
            os._exit(0)
        os.waitpid(pid, 0)
    events = guard.events()
    assert events == () and events.dropped == 0 and sum(events.counts.values()) == 0
    """
    python(code).ok()

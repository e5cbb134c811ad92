"""``allow_fork``: intended forks of one thread."""

from __future__ import annotations

import pytest
from support.child import environment, python


@pytest.mark.parametrize("policy", ["watch", "warn", "block"])
def test_allowed_forks_are_recorded_with_their_reason_and_never_spoken_of(
    policy: str,
) -> None:
    code = """
    import os
    import cuda_fork_guard as guard
    from cuda_fork_guard.testing import simulated_cuda
    with simulated_cuda():
        with guard.allow_fork("exec follows in C"):
            pid = os.fork()
            if pid == 0:
                status = guard.status()
                os._exit(10 + (status.inherited is True) + (status.driver == "inherited"))
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 12
        events = guard.events()
        assert events.counts["allowed"] == 1 and events.counts["fork"] == 0, events
        print(events[-1])
    """
    finished = python(code, env=environment(CUDA_FORK_GUARD=policy), flags=("-W", "error")).ok()
    assert "<string>:7 in <module>" in finished.out and "allowed: exec follows in C" in finished.out
    assert finished.err == ""


def test_other_threads_and_the_child_s_own_forks_are_not_allowed() -> None:
    code = """
    import os, threading
    import cuda_fork_guard as guard
    from cuda_fork_guard.testing import simulated_cuda
    guard.install("block")
    def refused():
        try:
            guard.check_fork()
        except guard.UnsafeForkError:
            return True
        return False
    with simulated_cuda():
        with guard.allow_fork("outer"):
            with guard.allow_fork("inner"):
                elsewhere = []
                thread = threading.Thread(target=lambda: elsewhere.append(refused()))
                thread.start(); thread.join()
                pid = os.fork()
                if pid == 0:
                    os._exit(20 + refused())
                child = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            still = refused()
        print(elsewhere, child, still, refused())
    """
    assert python(code).ok().out == "[True] 21 False True\n"


def test_the_child_may_leave_the_block_it_was_born_in() -> None:
    code = """
    import os
    import cuda_fork_guard as guard
    from cuda_fork_guard.testing import simulated_cuda
    guard.install("block")
    simulated = simulated_cuda()
    simulated.__enter__()
    with guard.allow_fork("the child goes on as the program"):
        pid = os.fork()
    if pid:
        assert os.waitpid(pid, 0)[1] == 0
    else:
        try:
            os.fork()
        except guard.UnsafeForkError as error:
            assert "inherited CUDA" in str(error), error
            os._exit(0)
        os._exit(1)
    """
    python(code).ok()


@pytest.mark.parametrize("reason", ["", "  ", None, 3, b"why"])
def test_a_reason_is_needed(reason: object) -> None:
    code = f"""
    import cuda_fork_guard
    try:
        cuda_fork_guard.allow_fork({reason!r})
    except ValueError as error:
        print(error)
    """
    assert "needs a reason in words" in python(code).ok().out


def test_a_reason_no_record_could_hold_is_still_no_fault() -> None:
    code = """
    import os
    import cuda_fork_guard as guard
    from cuda_fork_guard.testing import simulated_cuda
    with simulated_cuda():
        for reason in ("x" * 100_000, "caf\\u00e9 \\udcff lone", "two\\nlines", "a\\x1fb\\x1fc", "nul\\0inside"):
            with guard.allow_fork(reason):
                pid = os.fork()
                if pid == 0:
                    os._exit(0)
                os.waitpid(pid, 0)
        events = guard.events()
        assert events.counts["allowed"] == 5 and events.counts["fork"] == 0, events.counts
        assert not any("guard:" in reason for reason in guard.status().reasons), guard.status().reasons
        for event in [event for event in events if event.kind == "allowed"]:
            assert str(event).isprintable(), ascii(str(event))
            assert "<string>:8" in event.text, event
    """
    python(code).ok()

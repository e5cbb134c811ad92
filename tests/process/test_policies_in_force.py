"""Which policy is in force, and what each does to a plain ``os.fork``."""

from __future__ import annotations

import json

import pytest
from support.child import environment, python

# One fork while CUDA is up, with the outcome as JSON: what was raised, warned, recorded.
ONE_FORK = """
import json, os, sys, warnings
import cuda_fork_guard as guard
from cuda_fork_guard.testing import simulated_cuda

with simulated_cuda():
    raised = None
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            pid = os.fork()
            if pid == 0:
                os._exit(7)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
        except RuntimeError as error:
            raised = [type(error).__name__, str(error)]
    print(json.dumps({
        "policy": guard.status().policy,
        "raised": raised,
        "warned": [[w.category.__name__, str(w.message)] for w in seen if issubclass(w.category, RuntimeWarning)],
        "counts": guard.events().counts,
        "events": [str(event) for event in guard.events()],
    }))
"""


def outcome(code: str = ONE_FORK, **variables: str | None) -> dict[str, object]:
    finished = python(code, env=environment(**variables)).ok()
    assert finished.err == ""
    result: dict[str, object] = json.loads(finished.out)
    return result


def test_off_does_nothing_at_all() -> None:
    result = outcome(CUDA_FORK_GUARD="off")
    assert result["raised"] is None and result["warned"] == []
    counts = result["counts"]
    assert isinstance(counts, dict) and counts["fork"] == 0 and counts["allowed"] == 0


@pytest.mark.parametrize("value", [None, "", "watch"])
def test_watch_records_and_says_nothing(value: str | None) -> None:
    result = outcome(CUDA_FORK_GUARD=value)
    assert result["policy"] == "watch"
    assert result["raised"] is None and result["warned"] == []
    counts = result["counts"]
    assert isinstance(counts, dict) and counts["fork"] == 1


def test_warn_warns_once_and_forks() -> None:
    result = outcome(CUDA_FORK_GUARD="warn")
    warned = result["warned"]
    assert isinstance(warned, list) and [kind for kind, _ in warned] == ["UnsafeForkWarning"]
    text = warned[0][1]
    assert text.startswith("[CFG101] ") and "forked:  <string>:11 in <module>  (os.fork)" in text
    assert "\n  woken:   " in text and "\n  do:      " in text
    assert result["raised"] is None
    assert isinstance(result["counts"], dict) and result["counts"]["fork"] == 1


def test_block_refuses_and_records_no_fork() -> None:
    result = outcome(CUDA_FORK_GUARD="block")
    raised = result["raised"]
    assert isinstance(raised, list) and raised[0] == "UnsafeForkError"
    assert raised[1].startswith("[CFG101] ") and "<string>:11 in <module>" in raised[1]
    assert "allow_fork" in raised[1] and result["warned"] == []
    assert isinstance(result["counts"], dict) and result["counts"]["fork"] == 0


@pytest.mark.parametrize("flag", [(), ("-W", "error::RuntimeWarning:other")])
def test_a_value_that_is_no_policy_is_said_once_and_means_watch(
    flag: tuple[str, ...],
) -> None:
    code = """
    import cuda_fork_guard as guard
    import cuda_fork_guard
    print(guard.status().policy)
    """
    finished = python(code, env=environment(CUDA_FORK_GUARD="blok"), flags=flag).ok()
    assert finished.out == "watch\n"
    assert finished.err.count("CudaForkGuardWarning") == 1
    for word in (
        "CUDA_FORK_GUARD",
        "'blok'",
        "off, watch, warn, block",
    ):
        assert word in finished.err


def test_argument_over_variable_over_default() -> None:
    code = """
    import cuda_fork_guard as guard
    told = [guard.status().policy]
    guard.install(); told.append(guard.status().policy)
    guard.install("block"); told.append(guard.status().policy)
    guard.install(None, tripwire=False); told.append(guard.status().policy)
    guard.uninstall(); told.append(guard.status().policy)
    guard.uninstall()
    guard.install(); told.append(guard.status().policy)
    print(*told)
    """
    assert python(code, env=environment(CUDA_FORK_GUARD="warn")).ok().out == "warn warn block block off warn\n"
    assert python(code, env=environment(CUDA_FORK_GUARD=None)).ok().out == "watch watch block block off watch\n"


def test_a_bad_policy_argument_changes_nothing() -> None:
    code = """
    import cuda_fork_guard as guard
    guard.install("block")
    for bad in ("", "Block", 3, b"off", ["off"]):
        for call in (guard.install, guard.policy):
            try:
                call(bad)
            except ValueError as error:
                assert "choose one of" in str(error), error
            else:
                raise AssertionError(bad)
    try:
        guard.policy(None)
    except ValueError:
        print(guard.status().policy)
    """
    assert python(code).ok().out == "block\n"


def test_policy_blocks_nest_and_come_back_after_errors() -> None:
    code = """
    import cuda_fork_guard as guard
    told = []
    try:
        with guard.policy("block"):
            told.append(guard.status().policy)
            with guard.policy("off"):
                told.append(guard.status().policy)
            told.append(guard.status().policy)
            raise KeyError
    except KeyError:
        told.append(guard.status().policy)
    same = guard.policy("warn")
    with same, same:
        told.append(guard.status().policy)
    told.append(guard.status().policy)
    print(*told)
    """
    assert python(code).ok().out == "block off block watch warn watch\n"


def test_the_policy_is_the_whole_process_s_and_its_children_s() -> None:
    code = """
    import os, threading
    import cuda_fork_guard as guard
    from cuda_fork_guard.testing import simulated_cuda
    with simulated_cuda(), guard.policy("block"):
        told = []
        def fork():
            try:
                os.fork()
            except guard.UnsafeForkError:
                told.append("refused")
        thread = threading.Thread(target=fork)
        thread.start(); thread.join()
        with guard.allow_fork("to look at the child"):
            pid = os.fork()
        if pid == 0:
            fork()
            os._exit(len(told))
        told.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    print(*told)
    """
    assert python(code).ok().out == "refused 2\n"


def test_check_fork_judges_as_os_fork_would_and_makes_no_process() -> None:
    code = """
    import os, warnings
    import cuda_fork_guard as guard
    from cuda_fork_guard.testing import simulated_cuda
    guard.install("block")
    guard.check_fork()
    with simulated_cuda(state="loaded"):
        guard.check_fork()
    with simulated_cuda():
        try:
            guard.check_fork()
        except guard.UnsafeForkError as error:
            assert "<string>:11 in <module>" in str(error), error
        with guard.allow_fork("tested"):
            guard.check_fork()
        with guard.policy("off"):
            guard.check_fork()
        with guard.policy("warn"), warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            guard.check_fork()
        assert [w.category for w in seen] == [guard.UnsafeForkWarning] and seen[0].lineno == 20, seen
        assert guard.events().counts["fork"] == guard.events().counts["allowed"] == 0
    guard.check_fork()
    print("done")
    """
    assert python(code).ok().out == "done\n"

"""The package a second time in one process: imported twice, reloaded, removed and imported again, in another
interpreter."""

from __future__ import annotations

import sys

import pytest
from support.child import environment, python


def test_reloading_changes_nothing() -> None:
    code = """
    import importlib
    import cuda_fork_guard as guard
    from cuda_fork_guard.testing import simulated_cuda
    guard.install("block")
    assert importlib.reload(guard) is guard
    assert guard.status().policy == "block"
    with simulated_cuda():
        try:
            guard.check_fork()
        except guard.UnsafeForkError:
            print("refused")
    """
    assert python(code).ok().out == "refused\n"


AGAIN = """
import os, sys
import cuda_fork_guard as first
from cuda_fork_guard.testing import simulated_cuda
first.install("block")
def again():
    for name in [name for name in sys.modules if name.partition(".")[0] == "cuda_fork_guard"]:
        del sys.modules[name]
    import cuda_fork_guard
    return cuda_fork_guard
"""


def test_a_second_import_leaves_the_policy_and_sees_the_same_process() -> None:
    code = f"""{AGAIN}
second = again()
assert second is not first
assert second.status().policy == first.status().policy == "block"
with simulated_cuda():
    assert second.status().driver == first.status().driver == "initialized"
    try:
        os.fork()
    except second.UnsafeForkError:
        pass
    with first.allow_fork("known to both"):
        if (pid := os.fork()) == 0:
            os._exit(10 + (second.status().inherited is True) + (first.status().inherited is True))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 12
    with second.policy("warn"):
        assert first.status().policy == "warn"
    assert second.events().counts == first.events().counts
    assert second.events().counts["allowed"] == 1
third = again()
third.uninstall()
assert first.status().policy == second.status().policy == "off"
"""
    python(code).ok()


def test_many_imports_leave_one_set_of_hooks() -> None:
    code = f"""{AGAIN}
for _ in range(20):
    last = again()
last.install("watch")
with simulated_cuda():
    if (pid := os.fork()) == 0:
        os._exit(0)
    os.waitpid(pid, 0)
print(last.events().counts["fork"])
"""
    assert python(code).ok().out == "1\n"


# How to run code in a subinterpreter, by version: with the GIL shared ("legacy"), or with one of its own.
RUN = """
import os, sys
def run(source, isolated):
    if sys.version_info >= (3, 13):
        import _interpreters
        interpreter = _interpreters.create("isolated" if isolated else "legacy", reqrefs=False)
        failure = _interpreters.exec(interpreter, source)
        assert failure is None, failure
        _interpreters.destroy(interpreter)
    else:
        import _xxsubinterpreters as interpreters
        known = {"isolated": isolated} if isolated or sys.version_info < (3, 12) else {"isolated": False}
        interpreter = interpreters.create(**known)
        interpreters.run_string(interpreter, source)
        interpreters.destroy(interpreter)
"""


@pytest.mark.parametrize("isolated", [False, True])
def test_an_import_in_a_subinterpreter_changes_nothing_for_the_process(isolated: bool) -> None:
    code = f"""{RUN}
import cuda_fork_guard as guard
from cuda_fork_guard.testing import simulated_cuda
guard.install("block")
for _ in range(3):
    run("import cuda_fork_guard; cuda_fork_guard.status(); cuda_fork_guard.events()", {isolated})
assert guard.status().policy == "block"
with simulated_cuda():
    try:
        os.fork()
    except guard.UnsafeForkError:
        pass
    with guard.policy("watch"):
        if (pid := os.fork()) == 0:
            os._exit(0)
        os.waitpid(pid, 0)
    assert guard.events().counts["fork"] == 1
"""
    python(code).ok()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the native module works in subinterpreters from 3.12")
def test_a_legacy_subinterpreter_is_told_the_truth() -> None:
    code = f"""{RUN}
import cuda_fork_guard as guard
from cuda_fork_guard.testing import simulated_cuda
with simulated_cuda():
    run('''if True:
        import cuda_fork_guard as guard
        status = guard.status()
        assert status.driver == "initialized" and status.fork_is_safe is False, status
        assert status.inherited is False, status
        assert not any(word in reason for reason in status.reasons for word in ("nothing is recorded", "/proc")), status
        try:
            guard.verify_worker()
        except guard.WorkerNotCleanError:
            pass
        with guard.policy("block"):
            try:
                guard.check_fork()
            except guard.UnsafeForkError:
                print("refused")
    ''', False)
"""
    assert python(code).ok().out == "refused\n"


@pytest.mark.parametrize("isolated", [False, True])
def test_a_subinterpreter_that_can_not_have_the_native_module_says_so(isolated: bool) -> None:
    if sys.version_info >= (3, 12) and not isolated:
        pytest.skip("it can have it")
    code = f"""{RUN}
run('''if True:
    import cuda_fork_guard as guard
    status = guard.status()
    assert status.supported is False and "native module can't be loaded" in status.reasons[0], status
    assert guard.verify_worker().expect == "clean" and guard.events() == ()
    print("told")
''', {isolated})
"""
    if not isolated or sys.version_info >= (3, 12):
        assert python(code).ok().out == "told\n"


@pytest.mark.parametrize("policy", ["watch", "warn", "block"])
def test_a_fork_in_a_subinterpreter(policy: str) -> None:
    code = f"""{RUN}
import cuda_fork_guard as guard
from cuda_fork_guard.testing import simulated_cuda
with simulated_cuda():
    run('''if True:
        import os
        try:
            pid = os.fork()
        except RuntimeError as error:
            print(error)
        else:
            if pid == 0:
                os._exit(0)
            os.waitpid(pid, 0)
    ''', False)
    print(guard.events().counts["fork"], *[event.text for event in guard.events() if event.kind == "fork"])
"""
    # CPython itself kills such a child ("not main interpreter"); it was made, and is recorded.
    finished = python(code, env=environment(CUDA_FORK_GUARD=policy)).ok(riddles=True)
    if policy == "block":
        assert finished.out.startswith("[CFG101] fork refused") and finished.lines[-1] == "0"
    else:
        assert finished.out.startswith("1 forked pid") and "os.fork in a subinterpreter" in finished.out


def test_imported_in_a_subinterpreter_first() -> None:
    code = f"""{RUN}
run('''if True:
    import cuda_fork_guard as guard
    status = guard.status()
    assert not status.supported or any("Python's forks aren't seen" in reason for reason in status.reasons), status
''', False)
import cuda_fork_guard
assert cuda_fork_guard.status().policy == "watch"
assert not any("forks aren't seen" in reason for reason in cuda_fork_guard.status().reasons)
"""
    python(code).ok()

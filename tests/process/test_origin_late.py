"""Where the hook could not see the call: CUDA was up before, or somebody else has its place; and the end of a process."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.child import Finished, environment, python
from support.driver import native_libraries

from cuda_fork_guard.testing import driver_folder

DRIVER = driver_folder() + "/libcuda.so.1"
PRELUDE = f"""
import ctypes, os, sys, threading
if sys.argv[1:] != ["late"]:
    import cuda_fork_guard
cuda = ctypes.CDLL({DRIVER!r})
def told():
    import cuda_fork_guard
    status = cuda_fork_guard.status()
    return status.driver, status.origin and status.origin.how, status.origin and status.origin.line(), status.reasons
"""


@pytest.fixture
def helper(tmp_path: Path) -> str:
    return native_libraries.build("foreign_thread", tmp_path)


def child(code: str, *arguments: str, cwd: Path | None = None, **changes: str | None) -> Finished:
    return python(PRELUDE + code, *arguments, cwd=cwd, env=environment(**changes))


def test_cuda_was_up_before_the_import(tmp_path: Path) -> None:
    finished = child("cuda.cuInit(0)\nimport cuda_fork_guard\nprint(*told()[:3], sep='|')", "late", cwd=tmp_path).ok()
    assert finished.out == (
        "initialized|observed|unknown: CUDA was up before cuda_fork_guard was imported (program.py:11); import it first\n"
    )


def test_a_preloaded_library_woke_cuda_before_python(tmp_path: Path, helper: str) -> None:
    code = "print(*told()[:3], sep='|')"
    finished = child(code, cwd=tmp_path, LD_PRELOAD=helper, CALL_CUINIT_OF=DRIVER).ok()
    assert finished.out.startswith("initialized|observed|unknown: CUDA was up before cuda_fork_guard was imported")


def test_a_profiler_has_the_hooks_place(tmp_path: Path) -> None:
    code = """
assert os.environ["CUDA_INJECTION64_PATH"] == sys.argv[1]
cuda.cuInit(0)
print(*told()[:3], sep="|")
"""
    finished = child(
        code, "/opt/nsys/libToolsInjection64.so", cwd=tmp_path, CUDA_INJECTION64_PATH="/opt/nsys/libToolsInjection64.so"
    )
    driver, how, line = finished.ok().out.strip().split("|")
    assert (driver, how) == ("initialized", "observed")
    assert line.startswith("unknown: CUDA_INJECTION64_PATH was already set to '/opt/nsys/libToolsInjection64.so'")


def test_none_keeps_the_hook_off() -> None:
    code = """
assert os.environ["CUDA_INJECTION64_PATH"] == "none"
cuda.cuInit(0)
print(*told()[:3], sep="|")
"""
    driver, how, line = child(code, CUDA_INJECTION64_PATH="none").ok().out.strip().split("|")
    assert (driver, how) == ("initialized", "observed") and "CUDA_INJECTION64_PATH=none" in line


def test_another_installations_hook_is_replaced() -> None:
    code = """
cuda.cuInit(0)
assert os.environ["CUDA_INJECTION64_PATH"] != "/elsewhere/cuda_fork_guard_hook.so"
print(told()[1])
"""
    assert child(code, CUDA_INJECTION64_PATH="/elsewhere/cuda_fork_guard_hook.so").ok().out == "hook\n"


@pytest.mark.parametrize("held", ["CDLL", "PyDLL"])
def test_cuinit_at_exit(held: str, helper: str) -> None:
    """In an atexit callback, in a destructor of the interpreter's end, in C's exit: no crash and no riddle."""
    code = f"""
import atexit
again = ctypes.{held}({DRIVER!r})
class Last:
    def __del__(self, call=again.cuInit):
        call(0)
last = Last()
sys.last_of_all = Last()
atexit.register(again.cuInit, 0)
ctypes.CDLL(sys.argv[1]).at_exit(cuda.cuInit)
print("end", flush=True)
"""
    finished = child(code, helper).ok()
    assert (finished.out, finished.err) == ("end\n", "")


def test_cuinit_only_after_the_interpreter_has_ended(helper: str) -> None:
    finished = child("ctypes.CDLL(sys.argv[1]).at_exit(cuda.cuInit)", helper).ok()
    assert finished.err == ""


def test_cuinit_on_daemon_threads_while_the_interpreter_ends() -> None:
    """GIVEN threads that call cuInit without the GIL for ever WHEN the interpreter ends under them THEN it ends well: what
    a stack is read from is not freed meanwhile. Each round is a child, which captures anew."""
    code = """
for _ in range(60):
    if os.fork() == 0:
        for _ in range(3):
            threading.Thread(target=lambda: [cuda.cuInit(0) for _ in iter(int, 1)], daemon=True).start()
        sys.exit()
    assert os.wait()[1] == 0
"""
    assert child(code).ok().err == ""


def test_a_child_of_a_clean_parent_has_an_origin_of_its_own() -> None:
    code = """
def parent(): cuda.cuInit(0)
def child(): cuda.cuInit(0)
if os.fork() == 0:
    child()
    origin = cuda_fork_guard.status().origin
    assert (origin.pid, origin.python[-1].function) == (os.getpid(), "child"), origin
    os._exit(0)
assert os.wait()[1] == 0
parent()
own = cuda_fork_guard.status().origin
assert (own.pid, own.python[-1].function) == (os.getpid(), "parent")
if os.fork() == 0:
    if os.fork() == 0:  # a grandchild whose parents are gone has it too
        assert cuda_fork_guard.status().origin == own
        os._exit(0)
    os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
assert os.wait()[1] == 0
"""
    child(code).ok()

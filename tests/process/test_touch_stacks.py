"""The "used:" line of a touch, however the driver was called, and what else a touch must leave alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.child import Finished, python
from support.driver import native_libraries

PRELUDE = """
import ctypes, os, signal, sys, threading
import cuda_fork_guard as guard
from cuda_fork_guard.testing import simulated_cuda

def touch(how=ctypes.CDLL):
    return how("libcuda.so.1").cuCtxGetCurrent(ctypes.byref(ctypes.c_void_p()))

def forked(work):
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(7 if sys.exc_info()[0] is None else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def on_a_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

with simulated_cuda():
"""


@pytest.fixture
def helper(tmp_path: Path) -> str:
    return native_libraries.build("foreign_thread", tmp_path)


def program(body: str, folder: Path, *arguments: str) -> Finished:
    return python(PRELUDE + "".join(f"    {line}\n" for line in body.strip().splitlines()), *arguments, cwd=folder).ok()


def used(finished: Finished) -> str:
    lines = [line for line in finished.err.splitlines() if line.startswith("  used:    ")]
    assert len(lines) == 1, finished.err
    return lines[0].removeprefix("  used:    ")


@pytest.mark.parametrize("how", ["ctypes.CDLL", "ctypes.PyDLL"])
@pytest.mark.parametrize("thread", [False, True])
def test_with_and_without_the_gil(how: str, thread: bool, tmp_path: Path) -> None:
    work = f"lambda: touch({how})"
    if thread:
        work = f"lambda: on_a_thread({work})"
    assert used(program(f"assert forked({work}) == 7", tmp_path)).startswith("program.py:7 in touch  ")


def test_a_thread_python_never_saw(tmp_path: Path, helper: str) -> None:
    body = """
library, function = ctypes.CDLL(sys.argv[1]), ctypes.CDLL("libcuda.so.1").cuInit
assert forked(lambda: library.on_a_foreign_thread(function)) == 7
"""
    line = used(program(body, tmp_path, helper))
    assert line.startswith("unknown: a thread Python never saw (native: foreign_thread.so: call_the_driver)  (cuInit)")


def test_a_package_called_it(tmp_path: Path) -> None:
    """The line is the user's, not the package's or the standard library's."""
    package = tmp_path / "site-packages" / "pkg"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("def call(function):\n    return function()\n")
    body = """
sys.path.append("site-packages")
import functools, pkg
quiet = functools.partial(ctypes.CDLL("libcuda.so.1").cuInit, 0)
def user():
    pkg.call(quiet)
assert forked(user) == 7
"""
    assert used(program(body, tmp_path)).startswith("program.py:28 in user  ")


def test_deep_recursion(tmp_path: Path) -> None:
    body = """
def descend(left, how):
    descend(left - 1, how) if left else touch(how)
for how in (ctypes.CDLL, ctypes.PyDLL):
    assert forked(lambda: descend(900, how)) == 7
"""
    lines = [line for line in program(body, tmp_path).err.splitlines() if "used:" in line]
    assert len(lines) == 2 and all("program.py:7 in touch" in line for line in lines)


def test_names_that_are_not_ascii(tmp_path: Path) -> None:
    folder = tmp_path / "prüfung"
    folder.mkdir()
    body = """
exec(compile("def größe(): how('libcuda.so.1').cuInit(0)", "/d/模型.py", "exec"))
for how in (ctypes.CDLL, ctypes.PyDLL):
    assert forked(größe) == 7
"""
    lines = [line for line in program(body, folder).err.splitlines() if "used:" in line]
    assert len(lines) == 2 and all(line.startswith("  used:    /d/模型.py:1 in größe  ") for line in lines)


def test_the_cells_of_a_notebook(tmp_path: Path) -> None:
    """GIVEN what IPython keeps of its cells (9.18.1 and ipykernel 7.4.0, 2026-12-01) WHEN a cell forks and its child touches
    THEN all three lines name cells."""
    body = """
import types
files = [f"/tmp/ipykernel_1/{number}.py" for number in (71, 72, 73)]
ipython = types.ModuleType("IPython")
shell = types.SimpleNamespace(compile=types.SimpleNamespace(_filename_map=dict(zip(files, (1, 2, 3)))))
ipython.get_ipython = lambda: shell
sys.modules["IPython"] = ipython
cells = ["def work():\\n    touch_here()", "def main():\\n    return forked_here(work)", "code = main()"]
touch_here = ctypes.CDLL("libcuda.so.1").cuCtxSynchronize
exec(compile("def forked_here(work):\\n    child = os.fork()\\n    if child == 0: work(); os._exit(7)\\n    os.waitpid(child, 0)", files[2], "exec"))
for file, cell in zip(files, cells):
    exec(compile(cell, file, "exec"))
"""
    lines = program(body, tmp_path).err.splitlines()
    assert lines[1].startswith("  used:    cell In[1], line 2 in work")
    assert lines[2].startswith("  forked:  cell In[3], line 2 in forked_here  (os.fork, from pid")


def test_errno_stays(tmp_path: Path) -> None:
    body = """
library = ctypes.CDLL("libcuda.so.1", use_errno=True)
def child():
    ctypes.set_errno(77)
    library.cuInit(0)
    assert ctypes.get_errno() == 77, ctypes.get_errno()
assert forked(child) == 7
"""
    assert "(cuInit)" in used(program(body, tmp_path))


def test_another_thread_during_a_collection(tmp_path: Path) -> None:
    """A thread that doesn't collect garbage is not taken for one that does."""
    body = """
import gc
def child():
    def on_gc(phase, info):
        if phase == "start":
            on_a_thread(touch)
    gc.callbacks.append(on_gc)
    gc.collect()
assert forked(child) == 7
"""
    line = used(program(body, tmp_path))
    assert "in touch  " in line and "garbage" not in line

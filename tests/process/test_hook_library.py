"""What CUDA_INJECTION64_PATH names is loaded into any program that inherits the variable, and must be harmless there."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from support.child import environment, run

from cuda_fork_guard import guard
from cuda_fork_guard.testing import driver_folder

assert guard.native is not None and guard.native.__file__ is not None
HOOK = Path(guard.native.__file__).parent / "cuda_fork_guard_hook.so"
DRIVER = driver_folder() + "/libcuda.so.1"

PROGRAM = """
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char** words) {
    void* library = dlopen(words[count - 1], RTLD_NOW);
    int (*initialize)(unsigned) = (int (*)(unsigned))dlsym(library, "cuInit");
    int first = initialize(0);
    printf("%d %d\\n", first, initialize(0));
    return 0;
}
"""


def test_it_needs_the_c_library_and_nothing_of_python() -> None:
    readelf = shutil.which("readelf")
    if readelf is None:
        pytest.skip("no readelf")
    dynamic = run([readelf, "-dW", str(HOOK)]).ok().out
    needed = [line.split("[")[1].rstrip("]") for line in dynamic.splitlines() if "(NEEDED)" in line]
    assert set(needed) <= {"libc.so.6"}
    symbols = [line.split() for line in run([readelf, "--dyn-syms", "-W", str(HOOK)]).ok().out.splitlines()]
    named = {row[7].partition("@")[0]: row[6] for row in symbols if len(row) >= 8 and row[0] != "Num:"}
    assert not [name for name in named if "Py" in name]
    assert {name for name, section in named.items() if section != "UND"} == {
        "InitializeInjection",
        "cuda_fork_guard_hook_listen",
    }


def test_a_c_program(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    (tmp_path / "program.c").write_text(PROGRAM)
    run([compiler, "-o", str(tmp_path / "program"), str(tmp_path / "program.c"), "-ldl"]).ok()
    finished = run([str(tmp_path / "program"), DRIVER], env=environment(CUDA_INJECTION64_PATH=str(HOOK))).ok()
    assert (finished.out, finished.err) == ("0 0\n", "")


def test_another_python_without_the_guard() -> None:
    code = "import ctypes, sys; print([ctypes.CDLL(sys.argv[1]).cuInit(0) for _ in range(2)], 'cuda_fork_guard' in sys.modules)"
    command = [sys.executable, "-c", code, DRIVER]
    finished = run(command, env=environment(CUDA_INJECTION64_PATH=str(HOOK))).ok()
    assert (finished.out, finished.err) == ("[0, 0] False\n", "")


def test_a_shell_and_what_it_starts() -> None:
    command = ["sh", "-c", "echo $(sh -c 'echo harmless')"]
    finished = run(command, env=environment(CUDA_INJECTION64_PATH=str(HOOK))).ok()
    assert (finished.out, finished.err) == ("harmless\n", "")


def test_children_of_a_guarded_program_inherit_the_variable() -> None:
    code = """
import subprocess, sys
import cuda_fork_guard
inner = "import ctypes, os, sys; print(os.environ['CUDA_INJECTION64_PATH'] == sys.argv[2], ctypes.CDLL(sys.argv[1]).cuInit(0))"
print(subprocess.run([sys.executable, "-c", inner, *sys.argv[1:]], capture_output=True, text=True, check=True).stdout, end="")
"""
    assert run([sys.executable, "-c", code, DRIVER, str(HOOK)], env=environment()).ok().out == "True 0\n"


def test_a_listener_that_is_taken_away_is_not_called() -> None:
    code = """
import ctypes, sys
import cuda_fork_guard
from cuda_fork_guard.guard import native
cuda = ctypes.CDLL(sys.argv[1])
native.stop_listening()
cuda.cuInit(0)
assert native.origin() is None and native.state()["cuinit_calls"] == 0
assert native.listen(sys.argv[2]) == ""
cuda.cuInit(0)
assert native.origin() is not None and native.state()["cuinit_calls"] == 1
assert "not the hook library" in native.listen(sys.argv[1])
assert "cannot open" in native.listen("/nowhere/hook.so")
"""
    run([sys.executable, "-c", code, DRIVER, str(HOOK)], env=environment()).ok()

"""What importing the guard does to a process, seen from outside of it: exactly what the contract lists."""

from __future__ import annotations

import json

import pytest
from support.child import environment, python

SNAPSHOT = """
import json, os, signal, sys, threading, warnings
def snapshot():
    import fcntl
    return {
        "files": {number: os.readlink(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")
                  if os.path.lexists(f"/proc/self/fd/{number}")},
        "threads": sorted(os.listdir("/proc/self/task")),
        "signals": [str(signal.getsignal(number)) for number in sorted(signal.valid_signals())],
        "mask": sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, []))),
        "caught": [line for line in open("/proc/self/status") if line.startswith(("SigBlk", "SigIgn", "SigCgt"))],
        "environment": dict(os.environ),
        "argv": sys.argv,
        "path": sys.path,
        "flags": [sys.getswitchinterval(), sys.getrecursionlimit(), os.getcwd()],
        "hooks": [str(sys.excepthook), str(sys.displayhook), str(sys.unraisablehook), str(sys.meta_path)],
        "warnings": list(map(str, warnings.filters)),
        "umask": os.umask(os.umask(0)),
    }
snapshot()
before, modules = snapshot(), set(sys.modules)
import cuda_fork_guard
modules = sorted(set(sys.modules) - modules)
after = snapshot()
maps = open("/proc/self/maps").read()
print(json.dumps([before, after, modules, [name for name in ("libcuda.so", "libnvidia", "libtorch") if name in maps]]))
"""

BANNED = {
    "dataclasses", "typing", "multiprocessing", "inspect", "json", "ctypes", "torch", "numpy", "logging", "threading",
    "asyncio", "subprocess", "re", "tempfile", "importlib.metadata", "pathlib",
}  # fmt: skip


def test_only_the_injection_variable_changes() -> None:
    finished = python(SNAPSHOT).ok()
    assert finished.err == "" and len(finished.lines) == 1
    before, after, _, libraries = json.loads(finished.out)
    hook = after["environment"].pop("CUDA_INJECTION64_PATH")
    assert hook.endswith("/cuda_fork_guard_hook.so")
    assert before == after
    assert libraries == []


@pytest.mark.parametrize("policy", ["off", "watch", "block"])
def test_set_the_variable_guards_from_the_start_and_an_import_changes_nothing_more(policy: str) -> None:
    finished = python(SNAPSHOT, env=environment(CUDA_FORK_GUARD=policy)).ok()
    before, after, _, libraries = json.loads(finished.out)
    assert before["environment"]["CUDA_INJECTION64_PATH"].endswith("/cuda_fork_guard_hook.so")
    assert before == after and libraries == [] and finished.err == ""


@pytest.mark.parametrize("taken", ["none", "/opt/nsight/libToolsInjection64.so"])
def test_a_variable_that_somebody_set_stays(taken: str) -> None:
    before, after, _, _ = json.loads(python(SNAPSHOT, env=environment(CUDA_INJECTION64_PATH=taken)).ok().out)
    assert before == after


def test_no_heavy_module_is_imported() -> None:
    code = """
    import sys
    before = set(sys.modules)
    import cuda_fork_guard
    print(*sorted(set(sys.modules) - before))
    """
    loaded = set(python(code).ok().out.split())
    assert "cuda_fork_guard._native" in loaded
    assert not loaded & BANNED, sorted(loaded & BANNED)


def test_status_and_a_judged_fork_import_none_either() -> None:
    code = """
    import sys
    import cuda_fork_guard as guard
    guard.status(), guard.events(), guard.check_fork()
    import os
    if (pid := os.fork()) == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    banned = {"dataclasses", "typing", "multiprocessing", "inspect", "json", "ctypes", "torch", "numpy"}
    print(*sorted(banned & set(sys.modules)))
    """
    assert python(code).ok().out == "\n"


def test_uninstall_gives_the_variable_back_and_only_if_it_is_still_ours() -> None:
    code = """
    import os
    import cuda_fork_guard as guard
    name = "CUDA_INJECTION64_PATH"
    ours = os.environ[name]
    guard.uninstall()
    assert name not in os.environ
    guard.install()
    assert os.environ[name] == ours
    os.environ[name] = "/their/profiler.so"
    guard.uninstall()
    assert os.environ[name] == "/their/profiler.so"
    """
    python(code).ok()


def test_the_hooks_are_registered_once_however_often_it_is_installed() -> None:
    """A second registration would record every fork twice."""
    code = """
    import importlib, os, sys
    import cuda_fork_guard as guard
    from cuda_fork_guard.testing import simulated_cuda
    for _ in range(3):
        guard.install()
        guard.uninstall()
    guard.install("watch")
    importlib.reload(guard)
    with simulated_cuda():
        if (pid := os.fork()) == 0:
            guard.install()
            if (child := os.fork()) == 0:
                os._exit(0)
            os.waitpid(child, 0)
            os._exit(0)
        os.waitpid(pid, 0)
    print(guard.events().counts["fork"])
    """
    assert python(code).ok().out == "2\n"


def test_it_can_be_imported_last_at_shutdown() -> None:
    code = """
    import atexit
    def late():
        import cuda_fork_guard as guard
        print(guard.status().policy)
    atexit.register(late)
    """
    assert python(code).ok().out == "watch\n"

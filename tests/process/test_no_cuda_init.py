"""no_cuda_init: proof that a block did not call cuInit."""

from __future__ import annotations

from pathlib import Path

from support.child import environment, python

START = """
import ctypes, threading
import cuda_fork_guard as guard
from cuda_fork_guard.testing import simulated_cuda

def refused(*errors):
    try:
        with guard.no_cuda_init():
            work()
    except guard.CudaForkGuardError as error:
        print(type(error).__name__, *str(error).splitlines()[:2], sep="|")
        print(type(error.__cause__).__name__)
    else:
        print("clean")

"""


def said(body: str, folder: Path, **variables: str | None) -> list[str]:
    return python(START + body, cwd=folder, env=environment(**variables)).ok().lines


def test_a_block_that_leaves_cuda_alone(tmp_path: Path) -> None:
    assert said("def work(): ctypes.CDLL(None).getpid()\nrefused()", tmp_path) == ["clean"]


def test_the_call_is_named(tmp_path: Path) -> None:
    body = """
with simulated_cuda(state="loaded"):
    def work(): ctypes.CDLL("libcuda.so.1").cuInit(0)
    refused()
"""
    text, cause = said(body, tmp_path)
    assert text.startswith("CudaInitializedError|[CFG401] cuInit was called in a block that must not call it.")
    assert "woken:   program.py:18 in work" in text and cause == "NoneType"


def test_a_failed_call_counts_and_so_does_a_second_one(tmp_path: Path) -> None:
    body = """
with simulated_cuda(devices=0, state="loaded"):
    driver = ctypes.CDLL("libcuda.so.1")
    def first(): assert driver.cuInit(0) == 100
    def second(): assert driver.cuInit(0) == 100
    work = first
    refused()
    work = second
    refused()
    work = lambda: None
    refused()
"""
    first, _, second, _, third = said(body, tmp_path)
    assert "in first" in first and "in second" in second and third == "clean"


def test_the_blocks_own_error_stays_visible(tmp_path: Path) -> None:
    body = """
with simulated_cuda(devices=0, state="loaded"):
    def work():
        ctypes.CDLL("libcuda.so.1").cuInit(0)
        raise RuntimeError("No CUDA GPUs are available")
    refused()
"""
    text, cause = said(body, tmp_path)
    assert text.startswith("CudaInitializedError") and cause == "RuntimeError"


def test_another_thread_counts(tmp_path: Path) -> None:
    body = """
with simulated_cuda(state="loaded"):
    def work():
        thread = threading.Thread(target=lambda: ctypes.CDLL("libcuda.so.1").cuInit(0), name="waker")
        thread.start()
        thread.join()
    refused()
"""
    text, _ = said(body, tmp_path)
    # The thread was gone before Python could be asked for its name: its number has to do.
    assert text.startswith("CudaInitializedError") and (", thread waker)" in text or ", thread tid " in text)


def test_where_cuda_is_up_nothing_is_proved(tmp_path: Path) -> None:
    text, _ = said("def work(): raise SystemExit(9)\nwith simulated_cuda(): refused()", tmp_path)
    assert text.startswith("CudaInitializedError|[CFG401] CUDA is already initialized in this process")


def test_where_it_can_not_look_it_says_so(tmp_path: Path) -> None:
    for value in ("none", "/opt/profiler/libprofiler.so"):
        text, _ = said("def work(): raise SystemExit(9)\nrefused()", tmp_path, CUDA_INJECTION64_PATH=value)
        assert text.startswith("CudaForkGuardError|[CFG402] it can't be proved here") and value in text


def test_inside_itself(tmp_path: Path) -> None:
    body = """
proof = guard.no_cuda_init()
with proof, proof: pass
print("ok")
"""
    assert said(body, tmp_path) == ["ok"]

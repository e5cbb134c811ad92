"""Workers of each start method: what they are told about themselves, and a plain forkserver in which CUDA is up."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.child import environment, python

QUIET = ("-W", "ignore::DeprecationWarning")  # Python's own on forks of threaded processes (3.12)

FORKSERVER = """
import multiprocessing, os, sys
import cuda_fork_guard as guard

def work(expect):
    try:
        return guard.verify_worker(expect).driver
    except guard.CudaForkGuardError as error:
        return type(error).__name__ + ": " + str(error)

if __name__ == "__main__":
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["waker"])
    with context.Pool(2) as pool:
        for expect in ("clean", "cpu-only"):
            print(pool.map_async(work, [expect]).get(timeout=40)[0])
"""

WAKER = """
import ctypes, os
import cuda_fork_guard
from cuda_fork_guard.testing import driver_folder
cuda = ctypes.CDLL(os.path.join(driver_folder(), "libcuda.so.1"))
assert cuda.cuInit(0) == 0
"""


@pytest.mark.parametrize("policy", ["watch", "warn", "block"])
def test_a_plain_forkserver_in_which_a_preload_woke_cuda(tmp_path: Path, policy: str) -> None:
    """No EOFError riddle: the workers are made, and say by themselves what is wrong, and where."""
    (tmp_path / "waker.py").write_text(WAKER)
    # Up to 3.13 the server looks for its preloads where Python does: not in the program's folder.
    env = environment(CUDA_FORK_GUARD=policy, PYTHONPATH=str(tmp_path))
    finished = python(FORKSERVER, env=env, cwd=tmp_path, limit=55).ok()
    clean = finished.out.partition("inherited\n")[0]
    assert clean.startswith("ForkServerNotCleanError: [CFG302]") and "waker.py:6" in clean
    assert finished.out.endswith("inherited\n")
    assert "EOFError" not in finished.err
    assert ("[CFG101]" in finished.err) == (policy != "watch")
    if policy != "watch":
        assert "waker.py:6" in finished.err


def test_start_methods_are_told_in_reports(tmp_path: Path) -> None:
    code = """
    import multiprocessing, os, sys, threading
    import cuda_fork_guard as guard

    def method(_):
        # A worker may be verified from any of its threads.
        found = []
        thread = threading.Thread(target=lambda: found.append(guard.verify_worker().start_method))
        thread.start(); thread.join()
        assert found == [guard.verify_worker().start_method]
        return found[0]

    if __name__ == "__main__":
        assert guard.verify_worker().start_method is None
        for name in ("fork", "spawn", "forkserver"):
            with multiprocessing.get_context(name).Pool(1) as pool:
                print(name, *pool.map(method, [0]))
        if (pid := os.fork()) == 0:
            assert guard.verify_worker().start_method is None
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    """
    finished = python(code, cwd=tmp_path, flags=QUIET, limit=45).ok()
    assert finished.lines == ["fork fork", "spawn spawn", "forkserver forkserver"]

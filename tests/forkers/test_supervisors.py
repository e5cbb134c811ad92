"""Pools whose own code replaces their workers, and forkservers: a refusal there would reach nobody, so none is made, and
nothing hangs. The child is armed all the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.child import Finished
from support.forking import TOUCH_LINE, reports, run_program
from support.installed import needs

# The pool is made while CUDA is down; each worker does one task.
POOL = """
import {package}
from cuda_use import touch, wake

if __name__ == "__main__":
    with {package}.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        assert pool.map(abs, [-1]) == [1]
        wake()
        assert pool.map(touch, range(3), chunksize=1) == [3, 3, 3]
    print("done")
"""
# A module that the server preloads wakes CUDA there, not here.
FORKSERVER = """
import {package}
from cuda_use import touch

if __name__ == "__main__":
    context = {package}.get_context("forkserver")
    context.set_forkserver_preload(["preloaded"])
    process = context.Process(target=touch)
    process.start()
    process.join()
    assert process.exitcode == 0, process.exitcode
    print("done")
"""
PRELOADED = "from cuda_use import driver\n\ndriver.cuInit(0)\n"
QUIET = {"PYTHONWARNINGS": "ignore::DeprecationWarning"}

every_package = pytest.mark.parametrize("package", ["multiprocessing", "multiprocess", "billiard"])


def done(finished: Finished) -> str:
    assert finished.ok().out == "done\n"
    return finished.err


@every_package
@pytest.mark.parametrize("policy", ["watch", "warn", "block"])
def test_a_pool_that_replaces_its_workers(package: str, policy: str, tmp_path: Path) -> None:
    needs(package)
    err = done(run_program(POOL.format(package=package), tmp_path, policy, limit=40, variables=QUIET))
    found, rest = reports(err)
    # The first task may have gone to the worker that was made before CUDA came up.
    assert 2 <= len(found) <= 3, err
    for report in found:
        assert report.used.startswith(f"cuda_use.py:{TOUCH_LINE} in touch "), report
        assert "_handle_workers" in report.forked or "in _launch" in report.forked, report
        assert "spawn" in report.do or "get_context" in report.do, report
    assert ("UnsafeForkWarning: [CFG101]" in rest) is (policy != "watch")
    assert rest == "" or policy != "watch"


@every_package
@pytest.mark.parametrize("policy", ["watch", "warn", "block"])
def test_a_forkserver_in_which_cuda_is_up(package: str, policy: str, tmp_path: Path) -> None:
    needs(package)
    (tmp_path / "preloaded.py").write_text(PRELOADED)
    err = done(run_program(FORKSERVER.format(package=package), tmp_path, policy, limit=40, variables=QUIET))
    found, rest = reports(err)
    assert len(found) == 1 and found[0].woken.startswith("preloaded.py:3 in <module> "), err
    assert ("UnsafeForkWarning: [CFG101]" in rest) is (policy != "watch")

"""Case 19: CPython's own forkserver, in which the main script's module level woke CUDA; the guard came with the script."""

from __future__ import annotations

import sys

import pytest
from support.program import Program

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there are no such forks elsewhere")

# 3.14 runs the script itself in the server; before, the same module level is a preload that the program names.
PROGRAM = """
import multiprocessing
import cuda_fork_guard as guard
import use_driver
if {main_runs_in_server}:
    use_driver.wake()
def work(uses_cuda):
    if uses_cuda:
        use_driver.wake()
def verified():
    try:
        guard.verify_worker("clean")
    except guard.ForkServerNotCleanError:
        raise SystemExit(9)
if __name__ == "__main__":
    context = multiprocessing.get_context("forkserver")
    if not {main_runs_in_server}:
        context.set_forkserver_preload(["as_main_script"])
    workers = [context.Process(target=work, args=(number > 0,)) for number in range(3)]
    workers.append(context.Process(target=verified))
    for worker in workers: worker.start()
    for worker in workers: worker.join()
    print([worker.exitcode for worker in workers])
""".replace("{main_runs_in_server}", str(sys.version_info >= (3, 14)))

LINE = "use_driver.py:17 in wake"


@pytest.mark.parametrize("policy", ["watch", "warn", "block"])
def test_the_server_s_forks_are_told_once_and_the_workers_touches_each(program: Program, policy: str) -> None:
    finished = program(PROGRAM, CUDA_FORK_GUARD=policy).ok()
    assert finished.out == "[0, 0, 0, 9]\n"
    assert finished.err.count("[CFG101]") == (0 if policy == "watch" else 1), finished.err
    assert finished.err.count("[CFG102]") == 2, finished.err  # two of the workers used CUDA
    assert finished.err.count(LINE) >= 2 and "EOFError" not in finished.err


def test_also_where_warnings_are_errors(program: Program) -> None:
    finished = program(PROGRAM, CUDA_FORK_GUARD="warn", flags=("-W", "error::RuntimeWarning")).ok()
    assert finished.out == "[0, 0, 0, 9]\n" and "EOFError" not in finished.err
    assert "[CFG101]" in finished.err and LINE in finished.err

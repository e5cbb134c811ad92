"""Case 8: Celery's prefork pool, whose main process woke CUDA when it imported the tasks or later."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.child import Finished, environment, run
from support.forking import CUDA, Report, check_touched, reports
from support.installed import installed_program, needs

# The broker is a folder, so that no server is needed. The last task ends the worker.
TASKS = """
import os, signal
from celery import Celery, signals
from cuda_use import touch, wake

app = Celery("tasks", broker="filesystem://")
app.conf.broker_transport_options = {"data_folder_in": ".", "data_folder_out": "."}
app.conf.worker_hijack_root_logger = False
app.conf.broker_connection_retry_on_startup = True

@signals.worker_ready.connect
def ready(**_):
    if os.environ["WAKE"] == "when ready":
        wake()

if os.environ["WAKE"] == "on import":
    wake()

@app.task
def nothing():
    pass

@app.task
def predict():
    touch()
    os.kill(os.getppid(), signal.SIGTERM)
"""
WORKER = ("-A", "tasks", "worker", "--pool=prefork", "--concurrency=1", "--without-gossip", "--without-mingle",
          "--without-heartbeat")  # fmt: skip
ADVICE = "load the model lazily inside the task (or in worker_process_init), or run the worker with --pool=threads"


def work(folder: Path, policy: str, tasks: str, *options: str, wake: str = "on import") -> Finished:
    needs("celery")
    program = installed_program("celery")
    (folder / "cuda_use.py").write_text(CUDA)
    (folder / "tasks.py").write_text(TASKS)
    sending = environment(CUDA_FORK_GUARD="off", WAKE="never")
    subprocess.run(
        [sys.executable, "-c", f"from tasks import *; {tasks}"], cwd=folder, env=sending, check=True, timeout=60
    )
    # Python's and Celery's own warnings (it runs as root here and there) are not the guard's.
    env = environment(CUDA_FORK_GUARD=policy, WAKE=wake, PYTHONWARNINGS="ignore", C_FORCE_ROOT="1")
    return run([program, *WORKER, *options], env=env, cwd=folder)


def forked_line() -> str:
    import billiard.popen_fork

    source = Path(billiard.popen_fork.__file__).read_text().splitlines()
    return f"{billiard.popen_fork.__file__}:{source.index('        self.pid = os.fork()') + 1} in _launch"


def only_report(finished: Finished) -> tuple[Report, str]:
    found, rest = reports(finished.err)
    assert len(found) == 1, finished.err
    return found[0], rest


def test_watch_reports_the_task_and_names_the_pool_option(tmp_path: Path) -> None:
    report, rest = only_report(work(tmp_path, "watch", "predict.delay()").ok())
    check_touched(report, forked=forked_line(), forker="Celery prefork pool", advice=ADVICE)
    assert "[CFG" not in rest


def test_block_ends_the_worker_with_the_reason(tmp_path: Path) -> None:
    finished = work(tmp_path, "block", "predict.delay()")
    found, rest = reports(finished.err)
    assert finished.code == 1 and not found
    assert "UnsafeForkError: [CFG101] fork refused" in rest and "--pool=threads" in rest
    assert f"\n  forked:  {forked_line()}  (Celery prefork pool)\n" in rest


@pytest.mark.parametrize("policy", ["watch", "block"])
def test_a_worker_that_is_replaced_after_cuda_came_up(policy: str, tmp_path: Path) -> None:
    """A refusal would reach nobody there: the child is armed, and the task still runs."""
    tasks = "nothing.delay(); predict.delay()"
    report, rest = only_report(work(tmp_path, policy, tasks, "--max-tasks-per-child=1", wake="when ready").ok())
    assert report.forked == forked_line() and "--pool=threads" in report.do
    assert "UnsafeForkError" not in rest

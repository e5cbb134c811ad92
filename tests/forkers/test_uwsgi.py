"""uWSGI forks its workers in C, after the application was loaded: nothing can be refused, and no line of Python forks."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.child import Finished, environment, run
from support.forking import CUDA, TOUCH_LINE, WAKE_LINE, reports
from support.installed import installed_program

# A worker that is up uses its model once, and ends the server.
APPLICATION = """
import os, signal, uwsgi
from cuda_use import touch, wake

wake()

def work():
    touch()
    os.kill(uwsgi.masterpid(), signal.SIGINT)
    os._exit(0)  # uWSGI takes the worker's signals back when the application is loaded

if uwsgi.worker_id():  # loaded in a worker
    work()
else:
    uwsgi.post_fork_hook = work

def application(environ, start_response):
    return []
"""


def serve(folder: Path, policy: str, *options: str) -> Finished:
    program = installed_program("uwsgi")
    (folder / "cuda_use.py").write_text(CUDA)
    (folder / "application.py").write_text(APPLICATION)
    command = [
        program,
        "--master",
        "--processes=1",
        "--socket=server.sock",
        f"--pyhome={sys.prefix}",
        f"--pythonpath={folder}",
    ]
    return run(
        [*command, "--module=application", "--need-app", *options], env=environment(CUDA_FORK_GUARD=policy), cwd=folder
    )


@pytest.mark.parametrize("policy", ["watch", "warn", "block"])
def test_the_worker_is_reported_under_each_policy(policy: str, tmp_path: Path) -> None:
    found, rest = reports(serve(tmp_path, policy).ok().err)
    assert len(found) == 1, rest
    report = found[0]
    assert report.used.startswith(f"cuda_use.py:{TOUCH_LINE} in touch ")
    assert (report.forked, report.forker) == ("unknown: a native fork()", "uWSGI")
    assert report.woken.startswith(f"cuda_use.py:{WAKE_LINE} in wake ")
    assert report.do.startswith("lazy-apps = true")
    assert "[CFG" not in rest


def test_with_lazy_apps_each_worker_wakes_cuda_for_itself(tmp_path: Path) -> None:
    finished = serve(tmp_path, "watch", "--lazy-apps").ok()
    assert "[CFG" not in finished.err

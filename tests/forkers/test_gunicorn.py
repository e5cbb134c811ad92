"""Case 7: gunicorn's master loads the application, which wakes CUDA, then forks its workers."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from support.child import Finished, environment, run
from support.forking import CUDA, Report, check_touched, reports
from support.installed import installed_program, needs

APPLICATION = """
from cuda_use import touch, wake

wake()

def app(environ, start_response):
    start_response("200 OK", [])
    return [b""]
"""
# A worker that is up uses its model once, and asks the master to end.
SETTINGS = """
import os, signal
from cuda_use import touch

bind = "unix:server.sock"
control_socket_disable = True

def post_worker_init(worker):
    touch()
    os.kill(os.getppid(), signal.SIGTERM)
"""


def serve(folder: Path, policy: str, *options: str) -> Finished:
    needs("gunicorn")
    program = installed_program("gunicorn")
    (folder / "cuda_use.py").write_text(CUDA)
    (folder / "application.py").write_text(APPLICATION)
    (folder / "gunicorn.conf.py").write_text(SETTINGS)
    env = environment(CUDA_FORK_GUARD=policy, PYTHONWARNINGS="ignore::DeprecationWarning")
    return run([program, *options, "application:app"], env=env, cwd=folder)


def forked_line() -> str:
    import gunicorn.arbiter

    source = Path(gunicorn.arbiter.__file__).read_text()
    inside = source.index("os.fork()", source.index("def spawn_worker"))
    return f"{gunicorn.arbiter.__file__}:{source.count(os.linesep, 0, inside) + 1} in spawn_worker"


def only_report(finished: Finished) -> tuple[Report, str]:
    found, rest = reports(finished.err)
    assert len(found) == 1, finished.err
    return found[0], rest


def test_watch_reports_the_worker_and_never_advises_a_start_method(tmp_path: Path) -> None:
    report, rest = only_report(serve(tmp_path, "watch", "--preload").ok())
    check_touched(report, forked=forked_line(), forker="gunicorn", advice="post_worker_init hook, or drop --preload")
    assert "spawn" not in report.do and "get_context" not in report.do
    assert "[CFG" not in rest
    master = re.search(r"\[(\d+)\] \[INFO\] Listening", rest)
    assert master is not None and int(master[1]) == report.parent


def test_warn_warns_once_about_gunicorn_s_line(tmp_path: Path) -> None:
    found, rest = reports(serve(tmp_path, "warn", "--preload", "--workers=2").ok().err)
    assert found
    place = forked_line().removesuffix(" in spawn_worker")
    assert rest.count("UnsafeForkWarning") == 1
    assert f"{place}: UnsafeForkWarning: [CFG101] " in rest and f"\n  forked:  {forked_line()}  (gunicorn)\n" in rest


def test_block_ends_the_master_with_the_reason(tmp_path: Path) -> None:
    finished = serve(tmp_path, "block", "--preload")
    found, rest = reports(finished.err)
    assert finished.code != 0 and not found
    assert "UnsafeForkError: [CFG101] fork refused" in rest and "drop --preload" in rest
    assert "Booting worker" not in rest


@pytest.mark.parametrize("policy", ["watch", "block"])
def test_without_preload_each_worker_wakes_cuda_for_itself(policy: str, tmp_path: Path) -> None:
    finished = serve(tmp_path, policy).ok()
    assert "Booting worker" in finished.err and "[CFG" not in finished.err


def test_without_the_installed_program(tmp_path: Path) -> None:
    """``python -m gunicorn``: nobody's script is on the stack at all."""
    needs("gunicorn")
    (tmp_path / "cuda_use.py").write_text(CUDA)
    (tmp_path / "application.py").write_text(APPLICATION)
    (tmp_path / "gunicorn.conf.py").write_text(SETTINGS)
    command = [sys.executable, "-m", "gunicorn", "--preload", "application:app"]
    report, _ = only_report(run(command, env=environment(CUDA_FORK_GUARD="watch"), cwd=tmp_path).ok())
    assert (report.forked, report.forker) == (forked_line(), "gunicorn")

"""RQ's worker preloads the application's modules, which wake CUDA, and forks a process for each job."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from support.child import Finished
from support.forking import check_touched, marked_line, reports, run_program
from support.installed import needs, system_program

WORK = """
import redis, rq
from cuda_use import touch, wake

connection = redis.Redis(unix_socket_path="redis.sock")
queue = rq.Queue(connection=connection)
queue.enqueue(touch)
wake()
rq.Worker([queue], connection=connection).work(burst=True)  # forks
"""
PLACE = f"program.py:{marked_line(WORK)}"


@contextlib.contextmanager
def server(folder: Path) -> Iterator[None]:
    needs("rq", "redis")
    command = [system_program("redis-server"), "--port", "0", "--unixsocket", "redis.sock", "--save", ""]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            assert process.stdout is not None
            assert any("eady to accept connections" in line for line in process.stdout), "redis-server did not start"
            yield
        finally:
            process.kill()


def work(folder: Path, policy: str) -> Finished:
    with server(folder):
        return run_program(WORK, folder, policy, variables={"PYTHONWARNINGS": "ignore::DeprecationWarning"})


def test_watch_reports_the_job(tmp_path: Path) -> None:
    found, rest = reports(work(tmp_path, "watch").ok().err)
    assert len(found) == 1
    check_touched(
        found[0], forked=f"{PLACE} in <module>", forker="RQ worker", advice="inside the job, or use rq's SpawnWorker"
    )
    assert "[CFG" not in rest


def test_warn_warns_once_on_the_user_s_line(tmp_path: Path) -> None:
    found, rest = reports(work(tmp_path, "warn").ok().err)
    assert len(found) == 1 and rest.count("UnsafeForkWarning") == 1
    assert f"{PLACE}: UnsafeForkWarning: [CFG101] " in rest


def test_block_ends_the_worker_with_the_reason(tmp_path: Path) -> None:
    finished = work(tmp_path, "block")
    found, rest = reports(finished.err)
    assert not found, finished
    assert "[CFG101] fork refused" in rest and f"\n  forked:  {PLACE} in <module>  (RQ worker)\n" in rest

"""Where a fork is made, and what is special about it, read off stacks as the packages leave them."""

from __future__ import annotations

import os
import pty
import sys

import pytest
from support.frames import Call, user
from support.stacks import EXECUTOR, POOL, PROCESS, read, renamed, stdlib

from cuda_fork_guard import fork_site
from cuda_fork_guard.fork_site import ForkSite


@pytest.mark.parametrize(
    "calls",
    [
        [stdlib("os", "spawnv"), stdlib("os", "_spawnvef")],
        [stdlib("pty", "spawn"), stdlib("pty", "fork")],
        [
            Call("pexpect.pty_spawn", "_spawnpty"),
            Call("ptyprocess.ptyprocess", "spawn"),
            stdlib("pty", "fork"),
        ],
        [Call("ptyprocess.ptyprocess", "spawn"), stdlib("pty", "fork")],
    ],
)
def test_fork_and_exec(calls: list[Call]) -> None:
    assert read(user(), *calls).exec


@pytest.mark.parametrize("calls", [[stdlib("pty", "fork")], [user("spawn", "/home/me/pty.py", "my.pty")]])
def test_not_fork_and_exec(calls: list[Call]) -> None:
    assert not read(user(), *calls).exec


def test_the_names_are_those_of_the_running_python() -> None:
    """The tables name private functions of Python's: they must be there."""
    assert pty.spawn.__module__ == "pty" and os._spawnvef.__globals__["__name__"] == "os"  # type: ignore[attr-defined]
    from multiprocessing import forkserver, pool, process

    assert callable(pool.Pool._handle_workers)  # type: ignore[attr-defined]
    assert callable(forkserver.main) and callable(forkserver._serve_one)  # type: ignore[attr-defined]
    assert callable(process.BaseProcess._bootstrap)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("replacing", "name"),
    [
        (
            [stdlib("multiprocessing.pool", "_handle_workers"), *POOL[2:], *PROCESS],
            "multiprocessing.Pool",
        ),
        (
            [
                Call("multiprocess.pool", "_handle_workers"),
                *renamed(POOL[2:] + PROCESS, "multiprocess"),
            ],
            "multiprocess.Pool",
        ),
        (
            [
                Call("billiard.pool", "body"),
                Call("billiard.pool", "_repopulate_pool"),
                Call("billiard.popen_fork", "_launch"),
            ],
            "billiard",
        ),
    ],
)
def test_a_pool_that_replaces_its_workers(replacing: list[Call], name: str) -> None:
    site = read(stdlib("threading", "run"), *replacing)
    assert site.supervisor and site.forker.name == name
    if "multiprocessing" in name:
        assert site.where() == "unknown: no line of the program, in multiprocessing.pool._handle_workers"


def test_a_worker_born_in_that_thread_is_not_in_it() -> None:
    born = [stdlib("multiprocessing.pool", "_handle_workers"), *POOL[2:], *PROCESS]
    born += [
        stdlib("multiprocessing.process", "_bootstrap"),
        stdlib("multiprocessing.pool", "worker"),
    ]
    assert not read(*born, user("task"), *PROCESS).supervisor


def test_the_forkserver_and_its_workers() -> None:
    server = stdlib("multiprocessing.forkserver", "main")
    site = read(Call("__main__", "<module>", "<string>"), server)
    assert site.forkserver and site.forker.name == "forkserver"
    assert site.where() == "unknown: no line of the program, in multiprocessing.forkserver.main"
    worker = [
        server,
        stdlib("multiprocessing.forkserver", "_serve_one"),
        stdlib("multiprocessing.spawn", "_main"),
    ]
    assert not read(*worker, user("task"), *PROCESS).forkserver


def test_inductor_s_compile_workers_are_quiet_and_its_users_are_not() -> None:
    inductor = Call("torch._inductor.async_compile", "process_pool")
    assert read(user(), inductor, *EXECUTOR, *PROCESS).quiet
    assert not read(inductor, user("callback"), *PROCESS).quiet
    assert not read(user(), Call("torch._inductor_tools", "run"), *PROCESS).quiet


def test_no_frame_at_all() -> None:
    site = fork_site.read(None)
    assert site.where() == "unknown: no Python frame" and site.forker.name == "os.fork"


def test_only_python_s_own_frames() -> None:
    site = read(
        stdlib("socketserver", "serve_forever"),
        stdlib("socketserver", "process_request"),
    )
    assert site.file == ""
    assert site.where() == "unknown: no line of the program, in socketserver.process_request"


def test_the_innermost_package_stands_in_where_there_is_no_user_code() -> None:
    site = read(
        Call("celery.worker", "start"),
        Call("kombu.hub", "run"),
        stdlib("multiprocessing.popen_fork", "_launch"),
    )
    assert site.function == "run" and site.file.endswith("kombu/hub.py")


def test_a_deep_stack_is_bounded() -> None:
    def deep(depth: int) -> ForkSite:
        return fork_site.read(sys._getframe()) if depth == 0 else deep(depth - 1)

    site = deep(600)
    assert site.function == "deep" and site.forker.name == "os.fork"


def test_a_frame_whose_module_has_a_strange_name() -> None:
    strange: dict[str, object] = {"__name__": 7, "look": fork_site.read, "sys": sys}
    exec("def run():\n    return look(sys._getframe())", strange)
    site = strange["run"]()  # type: ignore[operator]
    assert site.function == "run" and site.file == "<string>"

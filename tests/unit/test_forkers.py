"""Who forks, and what is advised, read off stacks as the packages leave them."""

from __future__ import annotations

import pytest
from support.frames import Call, user
from support.stacks import DATALOADER, EXECUTOR, POOL, PROCESS, read, renamed


@pytest.mark.parametrize(
    ("calls", "name", "advice"),
    [
        ([], "os.fork", "fork before CUDA"),
        (PROCESS, "multiprocessing", "get_context()"),
        (POOL + PROCESS, "multiprocessing.Pool", "get_context()"),
        (EXECUTOR + PROCESS, "ProcessPoolExecutor", "mp_context="),
        (DATALOADER + PROCESS, "torch DataLoader", "multiprocessing_context="),
        (
            renamed(PROCESS, "multiprocess"),
            "multiprocess",
            "multiprocess.set_start_method",
        ),
        (
            renamed(POOL + PROCESS, "multiprocess"),
            "multiprocess.Pool",
            "multiprocess.set_start_method",
        ),
        (
            [
                Call("datasets.arrow_dataset", "map"),
                *renamed(POOL + PROCESS, "multiprocess"),
            ],
            "datasets, through multiprocess",
            "multiprocess.set_start_method",
        ),
        (
            [Call("torch.multiprocessing.spawn", "start_processes"), *PROCESS],
            "torch.multiprocessing",
            "spawn",
        ),
        ([Call("joblib.parallel", "__call__"), *POOL, *PROCESS], "joblib", "loky"),
        (
            [
                Call("lightning.pytorch.strategies.launchers.multiprocessing", "launch"),
                *PROCESS,
            ],
            "Lightning",
            "restart the kernel",
        ),
        (
            [Call("accelerate.launchers", "notebook_launcher"), *PROCESS],
            "accelerate notebook_launcher",
            "restart",
        ),
        (
            [Call("vllm.v1.engine.core_client", "__init__"), *PROCESS],
            "vLLM",
            "VLLM_WORKER_MULTIPROC_METHOD=spawn",
        ),
        # DataLoader inside Lightning: what the user can change is the loader.
        (
            [
                Call("lightning.pytorch.loops.fit_loop", "advance"),
                *DATALOADER,
                *PROCESS,
            ],
            "torch DataLoader",
            "CPU",
        ),
    ],
)
def test_the_forker_between_the_user_s_line_and_the_fork(calls: list[Call], name: str, advice: str) -> None:
    site = read(user(), *calls)
    assert site.forker.name == name and advice in site.forker.advice
    assert (site.file, site.line, site.function) == ("/home/me/train.py", 2, "main")
    assert not (site.exec or site.quiet or site.supervisor or site.forkserver)


@pytest.mark.parametrize(
    ("calls", "name", "advice"),
    [
        ([Call("gunicorn.app.base", "run"), Call("gunicorn.arbiter", "spawn_worker")], "gunicorn", "post_worker_init"),
        (
            [Call("celery.bin.worker", "worker"), Call("celery.concurrency.prefork", "on_start"),
             Call("billiard.pool", "_create_worker_process"), Call("billiard.popen_fork", "_launch")],
            "Celery prefork pool", "--pool=threads",
        ),
        ([Call("daemon.daemon", "fork_then_exit_parent")], "python-daemon", "DaemonContext"),
        ([Call("pytest_forked", "forked_run_report"), Call("py._process.forkedfunc", "__init__")],
         "pytest-forked", "--forked"),
    ],
)  # fmt: skip
def test_servers_that_fork_themselves(calls: list[Call], name: str, advice: str) -> None:
    """No line of the user's is on the stack: the innermost one that is not Python's own is named."""
    site = read(*calls)
    assert site.forker.name == name and advice in site.forker.advice
    assert (site.file, site.function) == (calls[-1].path(), calls[-1].function)
    assert "spawn method" not in site.forker.advice  # no start method applies to a plain os.fork


def test_a_worker_of_a_server_is_not_the_server() -> None:
    """gunicorn's frames are on its workers' stacks: a fork by the application there is the application's."""
    server = [
        Call("gunicorn.app.base", "run"),
        Call("gunicorn.arbiter", "spawn_worker"),
    ]
    assert read(*server, user("view", "/home/me/app.py")).forker.name == "os.fork"
    assert read(*server, user("view", "/home/me/app.py"), *PROCESS).forker.name == "multiprocessing"

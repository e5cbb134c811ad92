"""Who makes a fork, and what to advise: one table for forkers that call ``os.fork`` themselves, one for those that go
through another one.

A pattern names a module as ``__name__`` in its frames. Behind each row: the version that it was seen with
(tests/forkers).
"""

from __future__ import annotations

import sys

from .values import Value


class Forker(Value):
    """Whoever forked: its name in messages, and what to do instead."""

    __slots__ = ("name", "advice")
    name: str
    advice: str


_CONTEXT = "cuda_fork_guard.get_context()"
_MULTIPROCESS = (
    "multiprocess has a start method of its own (multiprocessing's says nothing about it): "
    "multiprocess.set_start_method('spawn'), or keep CUDA out of the {}"
)
_POOL = f"make the pool with {_CONTEXT}, or keep CUDA out of its workers"
_DAEMON = "become a daemon before anything initializes CUDA"

PLAIN = Forker(
    name="os.fork",
    advice="fork before CUDA is initialized, or start a fresh process (subprocess, multiprocessing with "
    f"{_CONTEXT}) for what uses CUDA",
)
_NATIVE = Forker(name="a C library", advice=PLAIN.advice)
_UWSGI = Forker(
    name="uWSGI",  # 2.0.31
    advice="lazy-apps = true, so that each worker loads the application for itself, or load the model in a function "
    "decorated with uwsgidecorators.postfork",
)

FORKSERVER = Forker(
    name="forkserver",
    advice="keep CUDA out of what the server imports: its preload list and, from Python 3.14 on, the main module; "
    "cuda_fork_guard.get_context(preload=…) starts no worker from a server that isn't clean",
)

_LIGHTNING = Forker(
    name="Lightning",
    advice="initialize nothing on CUDA before trainer.fit(), or strategy='ddp_spawn'; in a notebook, restart the kernel: "
    "nothing else takes CUDA down again",
)
_DATALOADER = Forker(
    name="torch DataLoader",
    advice=f"return CPU tensors and copy them in the main loop, or DataLoader(…, multiprocessing_context={_CONTEXT})",
)
_AIRFLOW = Forker(
    name="Airflow",
    advice="import CUDA libraries inside the task, not in plugins or settings; Airflow 2 can also start a fresh "
    "process for each task: core.execute_tasks_new_python_interpreter = True",
)
_PYTEST_FORKED = Forker(
    name="pytest-forked", advice="keep CUDA out of collection and of unforked tests, or drop --forked"
)

# A forker that calls os.fork itself: only the innermost frame tells, since its workers keep its frames on their stacks.
DIRECT: tuple[tuple[str, Forker], ...] = (
    (
        "gunicorn.",  # 27.0.1, 20.1.0: arbiter, dirty.arbiter, util.daemonize
        Forker(name="gunicorn", advice="load the model in the post_worker_init hook, or drop --preload"),
    ),
    (
        "rq.worker",  # 3.0.0, 1.16.2
        Forker(name="RQ worker", advice="import and load CUDA code inside the job, or use rq's SpawnWorker"),
    ),
    ("airflow", _AIRFLOW),  # task SDK 1.3.2, 2.10.5
    ("daemon.daemon", Forker(name="python-daemon", advice=f"{_DAEMON}: open the DaemonContext first")),  # 3.1.2
    ("celery.platforms", Forker(name="Celery --detach", advice=_DAEMON)),  # 5.7.0
    ("py._process.forkedfunc", _PYTEST_FORKED),  # py 1.11.0, below pytest-forked 1.6.0
    (
        "tornado.process",  # 6.6.1
        Forker(name="tornado fork_processes", advice="load the model after the fork: when start() has returned"),
    ),
    (
        "socketserver",
        Forker(
            name="socketserver.ForkingMixIn",
            advice="handle requests in threads (socketserver.ThreadingMixIn), or keep CUDA out of the server process",
        ),
    ),
)

# A forker that goes through another one: (pattern, the one below it or "" for any, rank, forker). Matched anywhere
# between the fork and the user's line. The outermost match of the highest rank wins: DataLoader uses multiprocessing, a
# launcher uses torch.multiprocessing.
THROUGH: tuple[tuple[str, str, int, Forker], ...] = (
    (
        "multiprocessing.",
        "",
        1,
        Forker(name="multiprocessing", advice=f"use {_CONTEXT} (or the spawn method), or keep CUDA out of the child"),
    ),
    ("multiprocess.", "", 1, Forker(name="multiprocess", advice=_MULTIPROCESS.format("child"))),  # 0.70.19
    (
        "billiard.",  # 4.3.2
        "",
        1,
        Forker(
            name="billiard",
            advice="billiard.set_start_method('spawn'), or keep CUDA out of the child; below Celery load the model inside "
            "the task, or run the worker with --pool=threads or --pool=solo",
        ),
    ),
    ("multiprocessing.pool", "", 2, Forker(name="multiprocessing.Pool", advice=_POOL)),
    ("multiprocess.pool", "", 2, Forker(name="multiprocess.Pool", advice=_MULTIPROCESS.format("mapped function"))),
    (
        "concurrent.futures.process",
        "",
        3,
        Forker(name="ProcessPoolExecutor", advice=f"ProcessPoolExecutor(mp_context={_CONTEXT})"),
    ),
    (
        "joblib.",  # 1.6.0
        "",
        4,
        Forker(name="joblib", advice="use joblib's loky backend, which starts fresh processes, or keep CUDA out"),
    ),
    (
        "torch.multiprocessing",  # 2.13.0
        "",
        4,
        Forker(name="torch.multiprocessing", advice=f"start_method='spawn', or processes from {_CONTEXT}"),
    ),
    (
        "datasets.",  # 5.2.0: map, filter, builders
        "multiprocess.",
        5,
        Forker(name="datasets, through multiprocess", advice=_MULTIPROCESS.format("mapped function")),
    ),
    (
        "datasets.",  # 5.2.0: to_csv, to_json, from_sql
        "multiprocessing.",
        5,
        Forker(
            name="datasets, through multiprocessing",
            advice="cuda_fork_guard.set_start_method() at the start of the program, or leave num_proc out here",
        ),
    ),
    ("lightning.", "", 6, _LIGHTNING),  # 2.6.6
    ("pytorch_lightning.", "", 6, _LIGHTNING),  # 2.6.6
    ("lightning_fabric.", "", 6, _LIGHTNING),  # 2.6.6
    (
        "accelerate.launchers",  # 1.15.0
        "",
        6,
        Forker(
            name="accelerate notebook_launcher",
            advice="restart the kernel (nothing else takes CUDA down again) and touch CUDA only inside the launched "
            "function",
        ),
    ),
    (
        "vllm.",  # 0.33.0
        "",
        6,
        Forker(
            name="vLLM",
            advice="set VLLM_WORKER_MULTIPROC_METHOD=spawn, and make the engine under if __name__ == '__main__'",
        ),
    ),
    ("airflow.", "", 6, _AIRFLOW),  # 3.3.2: LocalExecutor's workers
    ("pytest_forked", "", 6, _PYTEST_FORKED),  # 1.7.5
    (
        "celery.concurrency.",  # 5.7.0
        "billiard.",
        6,
        Forker(
            name="Celery prefork pool",
            advice="load the model lazily inside the task (or in worker_process_init), or run the worker with "
            "--pool=threads or --pool=solo",
        ),
    ),
    ("torch.utils.data.dataloader", "", 9, _DATALOADER),  # 2.13.0
    ("torchdata.stateful_dataloader", "", 9, _DATALOADER),  # 0.11.0
)


def matches(pattern: str, module: str) -> bool:
    """A pattern that ends in a dot is a package, another one a module or a package."""
    if pattern.endswith("."):
        return module.startswith(pattern)
    return module == pattern or module.startswith(pattern + ".")


def native() -> Forker:
    """Who makes forks that no Python code called. uWSGI's own module exists only in its processes."""
    return _UWSGI if "uwsgi" in sys.modules else _NATIVE

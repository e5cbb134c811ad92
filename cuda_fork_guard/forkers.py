"""Who made a fork, read off the stack: what needs no guarding, what can't be refused, and what to advise.

One table each. A module is named as ``__name__`` in its frames, so that a copy under another path still matches.
"""

from __future__ import annotations

from .values import Value

# fork + exec: the child replaces itself at once, which is always safe. (module, function that calls fork)
FORK_EXEC = {
    ("os", "_spawnvef"),
    ("pty", "spawn"),
    ("ptyprocess.ptyprocess", "spawn"),
    ("pexpect.pty_spawn", "_spawnpty"),
    ("twisted.internet.process", "_fork"),
    ("invoke.runners", "start"),
    ("sh", "__init__"),
}

# Threads of a pool that replace its workers: an exception there reaches nobody, and map() would wait for ever.
POOL_SUPERVISORS = {
    ("multiprocessing.pool", "_handle_workers"),
    ("multiprocess.pool", "_handle_workers"),
    ("billiard.pool", "body"),
}

# The forkserver process: a refusal there would reach the user as an EOFError in another process.
FORKSERVERS = {
    ("multiprocessing.forkserver", "main"),
    ("multiprocess.forkserver", "main"),
    ("billiard.forkserver", "main"),
}

# Where a forked worker's own code begins: frames outside of these are its parent's, still on the copied stack.
BIRTHS = {
    ("multiprocessing.process", "_bootstrap"),
    ("multiprocess.process", "_bootstrap"),
    ("billiard.process", "_bootstrap"),
    ("multiprocessing.forkserver", "_serve_one"),
    ("multiprocess.forkserver", "_serve_one"),
    ("billiard.forkserver", "_serve_one"),
}

# Inductor forks compile workers on purpose; they never use CUDA, and a touch in one is its own business.
QUIET_PREFIX = "torch._inductor."

_CONTEXT = "cuda_fork_guard.get_context()"
_DATALOADER = f"return CPU tensors and copy them in the main loop, or DataLoader(…, multiprocessing_context={_CONTEXT})"
_POOL = f"make the pool with {_CONTEXT}, or keep CUDA out of its workers"


class Forker(Value):
    """Whoever forked: its name in messages, and what to do instead."""

    __slots__ = ("name", "advice")
    name: str
    advice: str


PLAIN = Forker(
    name="os.fork",
    advice="fork before CUDA is initialized, or start a fresh process (subprocess, multiprocessing with "
    f"{_CONTEXT}) for what uses CUDA",
)

# A forker that calls os.fork itself: only the innermost frame tells, since its workers keep its frames on their stacks.
DIRECT: tuple[tuple[str, Forker], ...] = (
    (
        "gunicorn.arbiter",
        Forker(name="gunicorn", advice="load the model in the post_worker_init hook, or drop --preload"),
    ),
    (
        "billiard.popen_fork",
        Forker(
            name="Celery prefork pool",
            advice="load the model lazily inside the task (or in worker_process_init), or run the worker with "
            "--pool=threads or --pool=solo",
        ),
    ),
    (
        "rq.worker",
        Forker(name="RQ worker", advice="import and load CUDA code inside the job, or use rq's SpawnWorker"),
    ),
    (
        "airflow",
        Forker(
            name="Airflow",
            advice="import CUDA libraries inside the task, or set core.execute_tasks_new_python_interpreter = True",
        ),
    ),
    (
        "daemon.daemon",
        Forker(name="python-daemon", advice="open the DaemonContext before anything initializes CUDA"),
    ),
    (
        "pytest_forked",
        Forker(name="pytest-forked", advice="keep CUDA out of collection and of unforked tests, or drop --forked"),
    ),
    (
        "py._process.forkedfunc",
        Forker(name="pytest-forked", advice="keep CUDA out of collection and of unforked tests, or drop --forked"),
    ),
)

# A forker that goes through another one: matched anywhere between the fork and the user's line. The outermost match of
# the highest rank wins: DataLoader uses multiprocessing, a launcher uses torch.multiprocessing.
THROUGH: tuple[tuple[str, int, Forker], ...] = (
    (
        "multiprocessing.",
        1,
        Forker(name="multiprocessing", advice=f"use {_CONTEXT} (or the spawn method), or keep CUDA out of the child"),
    ),
    (
        "multiprocess.",
        1,
        Forker(
            name="multiprocess",
            advice="multiprocess has a start method of its own (multiprocessing's says nothing about it): "
            "multiprocess.set_start_method('spawn'), or keep CUDA out of the mapped function",
        ),
    ),
    ("multiprocessing.pool", 2, Forker(name="multiprocessing.Pool", advice=_POOL)),
    (
        "multiprocess.pool",
        2,
        Forker(
            name="multiprocess.Pool",
            advice="multiprocess has a start method of its own (multiprocessing's says nothing about it): "
            "multiprocess.set_start_method('spawn'), or keep CUDA out of the mapped function",
        ),
    ),
    (
        "concurrent.futures.process",
        3,
        Forker(name="ProcessPoolExecutor", advice=f"ProcessPoolExecutor(mp_context={_CONTEXT})"),
    ),
    (
        "joblib.",
        4,
        Forker(name="joblib", advice="use joblib's loky backend, which starts fresh processes, or keep CUDA out"),
    ),
    (
        "torch.multiprocessing",
        4,
        Forker(
            name="torch.multiprocessing",
            advice=f"start_method='spawn', or processes from {_CONTEXT}",
        ),
    ),
    ("torch.utils.data.dataloader", 9, Forker(name="torch DataLoader", advice=_DATALOADER)),
    (
        "lightning.",
        6,
        Forker(
            name="Lightning",
            advice="initialize nothing on CUDA before trainer.fit(), or strategy='ddp_spawn'; in a notebook, restart "
            "the kernel: nothing else takes CUDA down again",
        ),
    ),
    (
        "pytorch_lightning.",
        6,
        Forker(
            name="Lightning",
            advice="initialize nothing on CUDA before trainer.fit(), or strategy='ddp_spawn'; in a notebook, restart "
            "the kernel: nothing else takes CUDA down again",
        ),
    ),
    (
        "accelerate.",
        6,
        Forker(
            name="accelerate notebook_launcher",
            advice="restart the kernel (nothing else takes CUDA down again) and touch CUDA only inside the launched "
            "function",
        ),
    ),
    (
        "vllm.",
        6,
        Forker(
            name="vLLM",
            advice="set VLLM_WORKER_MULTIPROC_METHOD=spawn, and make the engine under if __name__ == '__main__'",
        ),
    ),
    (
        "datasets.",
        5,
        Forker(
            name="datasets.map through multiprocess",
            advice="multiprocess has a start method of its own (multiprocessing's says nothing about it): "
            "multiprocess.set_start_method('spawn'), or keep CUDA out of the mapped function",
        ),
    ),
)


def matches(pattern: str, module: str) -> bool:
    """A pattern that ends in a dot is a package, another one a module or a package."""
    if pattern.endswith("."):
        return module.startswith(pattern)
    return module == pattern or module.startswith(pattern + ".")

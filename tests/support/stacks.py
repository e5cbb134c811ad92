"""Stacks as Python's own modules and installed packages leave them at a fork: the outermost call first."""

from __future__ import annotations

import os

from cuda_fork_guard import fork_site
from cuda_fork_guard.fork_site import ForkSite

from .frames import Call, at_the_fork

STDLIB = os.path.dirname(os.__file__)


def stdlib(module: str, function: str) -> Call:
    return Call(module, function, f"{STDLIB}/{module.replace('.', '/')}.py")


PROCESS = [
    stdlib("multiprocessing.process", "start"),
    stdlib("multiprocessing.context", "_Popen"),
    stdlib("multiprocessing.popen_fork", "__init__"),
    stdlib("multiprocessing.popen_fork", "_launch"),
]
DATALOADER = [
    Call("torch.utils.data.dataloader", "__iter__"),
    Call("torch.utils.data.dataloader", "_get_iterator"),
    Call("torch.utils.data.dataloader", "__init__"),
]
POOL = [
    stdlib("multiprocessing.context", "Pool"),
    stdlib("multiprocessing.pool", "__init__"),
    stdlib("multiprocessing.pool", "_repopulate_pool"),
    stdlib("multiprocessing.pool", "_repopulate_pool_static"),
]
EXECUTOR = [
    stdlib("concurrent.futures.process", "submit"),
    stdlib("concurrent.futures.process", "_start_executor_manager_thread"),
    stdlib("concurrent.futures.process", "_launch_processes"),
    stdlib("concurrent.futures.process", "_spawn_process"),
]


def read(*calls: Call) -> ForkSite:
    return at_the_fork(list(calls), fork_site.read)


def renamed(calls: list[Call], package: str) -> list[Call]:
    """The same code under another package's name, installed: multiprocess, billiard."""
    return [Call(call.module.replace("multiprocessing", package, 1), call.function) for call in calls]

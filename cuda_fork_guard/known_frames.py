"""Frames that say by themselves what a fork is for, whoever called them.

A module is named as ``__name__`` in its frames, so that a copy under another path still matches. Behind each: the version
that it was seen with.
"""

from __future__ import annotations

# fork + exec: the child replaces itself at once, which is always safe. (module, function that calls fork)
FORK_EXEC = {
    ("os", "_spawnvef"),
    ("pty", "spawn"),
    ("http.server", "run_cgi"),
    ("ptyprocess.ptyprocess", "spawn"),  # 0.7.0; pexpect 4.9.0 goes through it
    ("pexpect.pty_spawn", "_spawnpty"),
    ("loky.backend.fork_exec", "fork_exec"),  # 3.4.1; later ones have no fork of their own
    ("joblib.externals.loky.backend.fork_exec", "fork_exec"),  # joblib 1.4.2
    ("twisted.internet.process", "_fork"),  # 26.10.0
    ("invoke.runners", "start"),  # 3.0.3, fabric goes through it
    ("sh", "__init__"),  # 2.4.0
    ("supervisor.process", "spawn"),  # 4.3.0
    ("gunicorn.arbiter", "reexec"),  # 27.0.1
    ("billiard.compat", "spawnv_passfds"),  # 4.3.2
}

# Put in os.fork's place by what they patch: a frame of theirs is nobody's fork.
WRAPPERS = {
    "gevent.os",  # 26.9.0
    "_pydev_bundle.pydev_monkey",  # debugpy 1.8, PyCharm
}

# Where a pool replaces its workers: an exception there reaches nobody. In a thread of the pool's map() would wait for
# ever; Celery's main loop takes it for a lost connection, and ends in a StopIteration that says nothing.
POOL_SUPERVISORS = {
    ("multiprocessing.pool", "_handle_workers"),
    ("multiprocess.pool", "_handle_workers"),  # 0.70.19
    ("billiard.pool", "_repopulate_pool"),  # 4.3.2, by its Supervisor thread or by Celery's loop
}

# The forkserver process: a refusal there would reach the user as an EOFError in another process.
FORKSERVERS = {
    ("multiprocessing.forkserver", "main"),
    ("multiprocess.forkserver", "main"),  # 0.70.19
    ("billiard.forkserver", "main"),  # 4.3.2
}

# Where a forked worker's own code begins: frames outside of these are its parent's, still on the copied stack.
BIRTHS = {
    ("multiprocessing.process", "_bootstrap"),
    ("multiprocess.process", "_bootstrap"),  # 0.70.19
    ("billiard.process", "_bootstrap"),  # 4.3.2
    ("multiprocessing.forkserver", "_serve_one"),
    ("multiprocess.forkserver", "_serve_one"),
    ("billiard.forkserver", "_serve_one"),
}

# Inductor forks compile workers on purpose; they never use CUDA, and a touch in one is its own business.
QUIET_PREFIX = "torch._inductor."  # 2.13.0

"""One short program for each library that forks: CUDA is woken, then the library forks on the line marked "# forks", and
the child touches CUDA."""

from __future__ import annotations

from forkers.program import OWN_START_METHOD, Program
from forkers.programs_with_torch import DATASETS, LAUNCHERS, TORCH

STANDARD_LIBRARY = (
    Program(
        "os.fork",
        "os.fork",
        "fork before CUDA is initialized",
        """
import os
from cuda_use import touch, wake

def main():
    pid = os.fork()  # forks
    if pid == 0:
        touch()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
""",
    ),
    Program(
        "Process",
        "multiprocessing",
        "use cuda_fork_guard.get_context()",
        """
import multiprocessing
from cuda_use import touch, wake

def main():
    process = multiprocessing.get_context("fork").Process(target=touch)
    process.start()  # forks
    process.join()
    assert process.exitcode == 0
""",
    ),
    Program(
        "Pool",
        "multiprocessing.Pool",
        "make the pool with cuda_fork_guard.get_context()",
        """
import multiprocessing
from cuda_use import touch, wake

def main():
    with multiprocessing.get_context("fork").Pool(1) as pool:  # forks
        assert pool.map(touch, range(2)) == [3, 3]
""",
    ),
    Program(
        "ProcessPoolExecutor",
        "ProcessPoolExecutor",
        "mp_context=cuda_fork_guard.get_context()",
        """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from cuda_use import touch, wake

def main():
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as executor:
        assert executor.submit(touch).result() == 3  # forks
""",
    ),
    Program(
        "socketserver",
        "socketserver.ForkingMixIn",
        "socketserver.ThreadingMixIn",
        """
import socket, socketserver
from cuda_use import touch, wake

class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        touch()
        self.request.sendall(b"done")

def main():
    socketserver.ForkingTCPServer.handle_error = lambda *_: (_ for _ in ()).throw(__import__("sys").exc_info()[1])
    with socketserver.ForkingTCPServer(("127.0.0.1", 0), Handler) as server:
        with socket.create_connection(server.server_address) as client:
            server.handle_request()  # forks
            assert client.recv(9) == b"done"
""",
    ),
)

WRAPPING = (
    Program(
        "gevent",
        "multiprocessing",
        "use cuda_fork_guard.get_context()",
        "from gevent import monkey; monkey.patch_all()\n" + STANDARD_LIBRARY[1].source.strip(),
        needs=("gevent",),
    ),
    Program(
        "debugpy",
        "os.fork",
        "fork before CUDA is initialized",
        "import os; os.environ['PYDEVD_DISABLE_FILE_VALIDATION'] = '1'\n"
        "import debugpy._vendored.force_pydevd\n"
        "from _pydev_bundle import pydev_monkey\n"
        "pydev_monkey.monkey_patch_os('fork', pydev_monkey.create_fork)  # what a debugger does when it attaches\n"
        "pydev_monkey._on_forked_process = lambda **_: None  # it would connect to the debugger\n"
        + STANDARD_LIBRARY[0].source.strip(),
        needs=("debugpy",),
    ),
)

POOLS = (
    Program(
        "multiprocess.Process",
        "multiprocess",
        OWN_START_METHOD,
        """
import multiprocess
from cuda_use import touch, wake

def main():
    process = multiprocess.get_context("fork").Process(target=touch)
    process.start()  # forks
    process.join()
    assert process.exitcode == 0
""",
        needs=("multiprocess",),
    ),
    Program(
        "multiprocess.Pool",
        "multiprocess.Pool",
        OWN_START_METHOD,
        """
import multiprocess
from cuda_use import touch, wake

def main():
    with multiprocess.get_context("fork").Pool(1) as pool:  # forks
        assert pool.map(touch, range(2)) == [3, 3]
""",
        needs=("multiprocess",),
    ),
    Program(
        "billiard",
        "billiard",
        "billiard.set_start_method('spawn')",
        """
import billiard
from cuda_use import touch, wake

def main():
    process = billiard.get_context("fork").Process(target=touch)
    process.start()  # forks
    process.join()
    assert process.exitcode == 0
""",
        needs=("billiard",),
    ),
    Program(
        "joblib",
        "joblib",
        "use joblib's loky backend",
        """
import joblib
from cuda_use import touch, wake

def main():
    jobs = (joblib.delayed(touch)() for _ in range(2))
    assert joblib.Parallel(n_jobs=2, backend="multiprocessing")(jobs) == [3, 3]  # forks
""",
        needs=("joblib",),
    ),
    Program(
        "tornado",
        "tornado fork_processes",
        "load the model after the fork",
        """
import os, tornado.process
from cuda_use import touch, wake

def main():
    try:
        tornado.process.fork_processes(2, max_restarts=0)  # forks
    except SystemExit:
        return
    touch()
    os._exit(0)
""",
        needs=("tornado",),
    ),
    Program(
        "python-daemon",
        "python-daemon",
        "open the DaemonContext first",
        """
import os, sys, daemon
from cuda_use import touch, wake

def main():
    context = daemon.DaemonContext(stderr=sys.stderr, working_directory=os.getcwd(), detach_process=True)
    with context:  # forks
        touch()
""",
        needs=("daemon",),
        warnings=2,
    ),
)

PROGRAMS = (*STANDARD_LIBRARY, *WRAPPING, *POOLS, *TORCH, *DATASETS, *LAUNCHERS)

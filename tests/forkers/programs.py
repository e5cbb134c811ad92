"""One short program for each library that forks: CUDA is woken, then the library forks on the line marked "# forks", and
the child touches CUDA."""

from __future__ import annotations

from typing import NamedTuple


class Program(NamedTuple):
    id: str
    name: str  # of the forker in messages
    advice: str  # words that must be in the "do:" line
    source: str  # has a function main(), called after CUDA was woken
    needs: tuple[str, ...] = ()  # modules of packages that must be installed
    refused: str = "UnsafeForkError: [CFG101]"  # what `block` leaves on stderr
    warnings: int = 1  # a daemon forks twice
    chatty: bool = False  # the library itself writes to stderr
    limit: float = 100

    def text(self) -> str:
        return f"{self.source.strip()}\n\nif __name__ == '__main__':\n    wake()\n    main()\n"


_OWN_START_METHOD = "multiprocess.set_start_method('spawn')"

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
        _OWN_START_METHOD,
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
        _OWN_START_METHOD,
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

TORCH = (
    Program(
        "torch.multiprocessing",
        "torch.multiprocessing",
        "start_method='spawn'",
        """
import torch.multiprocessing
from cuda_use import touch, wake

def main():
    torch.multiprocessing.start_processes(touch, nprocs=1, start_method="fork")  # forks
""",
        needs=("torch",),
    ),
    Program(
        "DataLoader",
        "torch DataLoader",
        "multiprocessing_context=cuda_fork_guard.get_context()",
        """
from torch.utils.data import DataLoader
from cuda_use import touch, wake

class Squares:
    def __len__(self):
        return 4

    def __getitem__(self, index):
        touch()
        return index * index

def main():
    loader = DataLoader(Squares(), num_workers=1, multiprocessing_context="fork")
    assert [int(x) for x in loader] == [0, 1, 4, 9]  # forks
""",
        needs=("torch",),
    ),
    Program(
        "StatefulDataLoader",
        "torch DataLoader",
        "multiprocessing_context=cuda_fork_guard.get_context()",
        """
from torchdata.stateful_dataloader import StatefulDataLoader
from cuda_use import touch, wake

class Squares:
    def __len__(self):
        return 4

    def __getitem__(self, index):
        touch()
        return index * index

def main():
    loader = StatefulDataLoader(Squares(), num_workers=1, multiprocessing_context="fork")
    assert [int(x) for x in loader] == [0, 1, 4, 9]  # forks
""",
        needs=("torch", "torchdata"),
        chatty=True,
    ),
)

DATASETS = (
    Program(
        "datasets.map",
        "datasets, through multiprocess",
        _OWN_START_METHOD,
        """
import multiprocessing
multiprocessing.set_start_method("spawn")  # says nothing about multiprocess
import datasets
from cuda_use import touch, wake

def double(row):
    touch()
    return {"x": 2 * row["x"]}

def main():
    datasets.disable_progress_bars()
    rows = datasets.Dataset.from_dict({"x": [1, 2, 3, 4]})
    rows = rows.map(double, num_proc=2)  # forks
    assert rows["x"][:] == [2, 4, 6, 8]
""",
        needs=("datasets",),
    ),
    Program(
        "datasets.to_csv",
        "datasets, through multiprocessing",
        "leave num_proc out",
        """
import datasets, datasets.io.csv
from cuda_use import touch, wake

writer = datasets.io.csv.CsvDatasetWriter
write = writer._batch_csv

def _batch_csv(self, part):
    touch()
    return write(self, part)

writer._batch_csv = _batch_csv

def main():
    datasets.disable_progress_bars()
    rows = datasets.Dataset.from_dict({"x": [1, 2, 3, 4]})
    rows.to_csv("rows.csv", batch_size=2, num_proc=2)  # forks
""",
        needs=("datasets",),
    ),
)

_FIT = """
import torch
import {} as pl
from cuda_use import touch, wake

class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

    def train_dataloader(self):
        return torch.utils.data.DataLoader([torch.zeros(1)] * 2)

    def training_step(self, batch, batch_index):
        touch()
        return self.layer(batch).sum()

def main():
    trainer = pl.Trainer(
        strategy="ddp_fork", accelerator="cpu", devices=1, max_epochs=1, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )
    trainer.fit(Model())  # forks
"""

LAUNCHERS = (
    Program(
        "lightning", "Lightning", "restart the kernel", _FIT.format("lightning.pytorch"),
        needs=("lightning",), chatty=True,
    ),
    Program(
        "pytorch_lightning", "Lightning", "restart the kernel", _FIT.format("pytorch_lightning"),
        needs=("pytorch_lightning",), chatty=True,
    ),
    Program(
        "lightning.fabric",
        "Lightning",
        "restart the kernel",
        """
from lightning.fabric import Fabric
from cuda_use import touch, wake

def main():
    Fabric(strategy="ddp_fork", accelerator="cpu", devices=1).launch(touch)  # forks
""",
        needs=("lightning",),
        chatty=True,
    ),
    Program(
        "accelerate",
        "accelerate notebook_launcher",
        "restart the kernel",
        """
import accelerate
from cuda_use import touch, wake

def main():
    accelerate.notebook_launcher(touch, num_processes=2)  # forks
""",
        needs=("accelerate",),
        chatty=True,
    ),
)  # fmt: skip

PROGRAMS = (*STANDARD_LIBRARY, *WRAPPING, *POOLS, *TORCH, *DATASETS, *LAUNCHERS)

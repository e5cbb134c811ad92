"""The programs whose library needs torch, or is heavy: see programs.py."""

from __future__ import annotations

from forkers.program import OWN_START_METHOD, Program

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
        OWN_START_METHOD,
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

"""DataLoader with real torch, CUDA up (simulated): what the issue's real input says, cases 1 and 20."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.child import Finished, environment, python

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

PROGRAM = """
import ctypes, os, sys
import cuda_fork_guard as guard
from cuda_fork_guard.testing import simulated_cuda
import torch
from torch.utils.data import DataLoader, Dataset

class Squares(Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, index):
        return torch.tensor(index * index)

class Touching(Squares):
    def __getitem__(self, index):
        ctypes.CDLL("libcuda.so.1").cuCtxGetCurrent(ctypes.byref(ctypes.c_void_p()))  # TOUCH
        return super().__getitem__(index)

def data(loader):
    return sorted(int(number) for batch in loader for number in batch)

EXPECTED = [number * number for number in range(8)]
"""
TOUCH_LINE = 1 + PROGRAM.splitlines().index(next(line for line in PROGRAM.splitlines() if "# TOUCH" in line))


def run(body: str, folder: Path, policy: str | None = None, *flags: str) -> Finished:
    code = f"{PROGRAM}\nif __name__ == '__main__':\n" + "".join(f"    {line}\n" for line in body.strip().splitlines())
    return python(code, cwd=folder, env=environment(CUDA_FORK_GUARD=policy), flags=flags, limit=60)


def line_of(body: str, marked: str) -> int:
    """Where this line of the body stands in the program."""
    return (
        len(PROGRAM.splitlines()) + 2 + next(i for i, line in enumerate(body.strip().splitlines(), 1) if marked in line)
    )


BLOCK = """
with simulated_cuda():
    loader = DataLoader(Squares(), batch_size=2, num_workers=2)
    try:
        iter(loader)
    except guard.UnsafeForkError as error:
        print(error)
    print(guard.events().counts["fork"], open(f"/proc/self/task/{os.getpid()}/children").read().split())
"""


def test_block_refuses_out_of_iter_and_no_worker_is_made(tmp_path: Path) -> None:
    finished = run(BLOCK, tmp_path, "block").ok()
    lines = finished.lines
    assert lines[0].startswith("[CFG101] fork refused while CUDA is initialized")
    assert lines[1] == f"  forked:  program.py:{line_of(BLOCK, 'iter(loader)')} in <module>  (torch DataLoader)"
    assert lines[3].startswith("  do:      return CPU tensors") and "get_context()" in lines[3]
    assert lines[-1] == "0 []" and finished.err == "", finished


WARN = """
with simulated_cuda():
    loader = DataLoader(Squares(), batch_size=2, num_workers=2)
    for epoch in range(2):
        assert data(loader) == EXPECTED
    print(guard.events().counts["fork"])
"""


def test_warn_warns_exactly_once_on_the_user_s_line_and_the_data_arrives(tmp_path: Path) -> None:
    finished = run(WARN, tmp_path, "warn").ok()
    assert finished.out == "4\n"
    assert finished.err.count("UnsafeForkWarning") == 1, finished.err
    line = 1 + next(i for i, text in enumerate(PROGRAM.splitlines(), 0) if "for batch in loader" in text)
    assert finished.err.startswith(f"{tmp_path}/program.py:{line}: UnsafeForkWarning: [CFG101]"), finished.err
    assert "(torch DataLoader)" in finished.err and "multiprocessing_context=" in finished.err


def test_an_error_filter_refuses_before_a_worker_is_made(tmp_path: Path) -> None:
    body = """
with simulated_cuda():
    try:
        iter(DataLoader(Squares(), num_workers=2))
    except guard.UnsafeForkWarning:
        print(guard.events().counts["fork"])
"""
    assert run(body, tmp_path, "warn", "-W", "error::RuntimeWarning").ok().out == "0\n"


def test_watch_is_silent_the_data_arrives_and_the_forks_are_events(tmp_path: Path) -> None:
    body = """
with simulated_cuda():
    assert data(DataLoader(Squares(), batch_size=2, num_workers=2)) == EXPECTED
    for event in guard.events():
        if event.kind == "fork":
            print(event)
"""
    finished = run(body, tmp_path).ok()
    assert finished.err == "" and len(finished.lines) == 2
    assert all("(torch DataLoader, from pid" in line and "program.py:" in line for line in finished.lines)


def test_case_1_a_dataset_that_uses_cuda_is_reported_with_its_three_lines(tmp_path: Path) -> None:
    body = """
with simulated_cuda():
    assert data(DataLoader(Touching(), batch_size=2, num_workers=2)) == EXPECTED
    print(guard.events().counts["touch"])
"""
    finished = run(body, tmp_path).ok()
    assert finished.out == "2\n"
    assert finished.err.count("[CFG102]") == 2  # one a worker
    assert f"used:    program.py:{TOUCH_LINE} in __getitem__" in finished.err
    assert "(torch DataLoader, from pid" in finished.err and "woken:   program.py:" in finished.err
    assert "do:      return CPU tensors" in finished.err


def test_case_20_epochs_of_normal_training_are_silent(tmp_path: Path) -> None:
    """CUDA is up and another thread runs: from the second epoch on that is every training that pins memory."""
    body = """
import threading
stop = threading.Event()
threading.Thread(target=stop.wait, name="pin_memory", daemon=True).start()
with simulated_cuda(state="active"):
    for epoch in range(3):
        assert data(DataLoader(Squares(), batch_size=2, num_workers=2)) == EXPECTED
    events = [event for event in guard.events() if event.kind == "fork"]
    print(len(events), all("pin_memory" in event.text for event in events), guard.events().counts["touch"])
stop.set()
"""
    finished = run(body, tmp_path, None, "-W", "ignore::DeprecationWarning").ok()
    assert finished.out == "6 True 0\n" and finished.err == ""


def test_spawned_workers_each_with_a_fresh_context_of_their_own(tmp_path: Path) -> None:
    body = """
with simulated_cuda():
    verify = guard.make_worker_init_fn(expect="fresh", device=0)
    loader = DataLoader(Reported(), batch_size=None, num_workers=2, worker_init_fn=verify, multiprocessing_context="spawn")
    items = list(loader)
    assert sorted(int(number) for number, _ in items) == EXPECTED
    reports = [report for _, report in items]
    print(len({report["pid"] for report in reports}), {report["driver"] for report in reports},
          {report["start_method"] for report in reports}, {report["inherited"] for report in reports})
"""
    extra = """
class Reported(Squares):
    def __getitem__(self, index):
        return super().__getitem__(index), guard.verify_worker("fresh", device=0).as_dict()
"""
    code = f"{PROGRAM}{extra}\nif __name__ == '__main__':\n" + "".join(
        f"    {one}\n" for one in body.strip().splitlines()
    )
    finished = python(code, cwd=tmp_path, env=environment(CUDA_FORK_GUARD="block"), limit=60).ok()
    assert finished.out == "2 {'active'} {'spawn'} {False}\n" and finished.err == ""


CLEAN = """
with simulated_cuda():
    try:
        data(DataLoader(Squares(), num_workers=2, worker_init_fn=INIT))
    except guard.InheritedCudaError as error:
        print(error)
"""


@pytest.mark.parametrize("init", ["guard.worker_init_fn", 'guard.make_worker_init_fn(expect="clean")'])
def test_a_forked_worker_that_is_to_be_clean_says_so_to_its_parent(tmp_path: Path, init: str) -> None:
    finished = run(CLEAN.replace("INIT", init), tmp_path).ok()
    assert finished.out.startswith("Caught InheritedCudaError in DataLoader worker process")
    assert finished.out.count("[CFG201] worker (pid ") == 1
    for words in ("forked:  program.py:", "woken:   program.py:", "get_context()", "expect='cpu-only'"):
        assert words in finished.out


def test_a_forked_worker_that_is_to_be_cpu_only_works(tmp_path: Path) -> None:
    body = """
with simulated_cuda():
    init = guard.make_worker_init_fn(expect="cpu-only", release_handles=True)
    assert data(DataLoader(Squares(), batch_size=2, num_workers=2, worker_init_fn=init)) == EXPECTED
    print(guard.events().counts["worker"], guard.events().counts["touch"])
"""
    finished = run(body, tmp_path).ok()
    assert finished.out == "2 0\n" and finished.err == ""


def test_an_own_init_function_runs_after_the_verification(tmp_path: Path) -> None:
    body = """
def own(worker_id):
    assert worker_id in (0, 1)
    raise KeyError(f"from my own function in worker {worker_id}")
try:
    data(DataLoader(Squares(), num_workers=1, worker_init_fn=guard.make_worker_init_fn(own)))
except KeyError as error:
    print("my own function in worker 0" in str(error))
"""
    assert run(body, tmp_path).ok().out == "True\n"


def test_torch_multiprocessing_passes_the_text(tmp_path: Path) -> None:
    body = """
import torch.multiprocessing as mp
with simulated_cuda():
    try:
        mp.start_processes(guard.worker_init_fn, nprocs=1, start_method="fork")
    except mp.ProcessRaisedException as error:
        print(error)
"""
    out = run(body, tmp_path).ok().out
    assert "cuda_fork_guard.errors.InheritedCudaError: [CFG201] worker (pid " in out and "(torch.multiprocessing" in out

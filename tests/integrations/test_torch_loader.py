"""verify_loader: a report for each worker of a DataLoader."""

from __future__ import annotations

import re
import sys

import pytest
from support.program import Program

pytest.importorskip("torch")
pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="workers are verified on Linux"),
]

LOADER = """
import os, signal
import cuda_fork_guard as guard
import left, use_driver
from cuda_fork_guard.integrations.torch import verify_loader
from torch.utils.data import DataLoader, Dataset
class Pids(Dataset):
    def __len__(self): return 8
    def __getitem__(self, index): return os.getpid()
def pids(loader):
    return {int(pid) for batch in loader for pid in batch}
def load_driver(worker_id):
    use_driver.library()
def make(**arguments):
    arguments.setdefault("multiprocessing_context", guard.get_context(preload=("torch",)))
    return DataLoader(Pids(), num_workers=2, **arguments)
"""


def test_one_report_a_worker_and_a_table(program: Program) -> None:
    code = LOADER + (
        """
if __name__ == "__main__":
    reports = verify_loader(make())
    assert len({report.pid for report in reports} | {os.getpid()}) == 3
    assert all(isinstance(report, guard.WorkerReport) for report in reports)
    assert {(report.start_method, report.expect, report.inherited) for report in reports} == {("forkserver", "clean", False)}
    print(reports)
    assert len(left.children()) == 1  # the server: the workers have ended
"""
    )
    heading, first, second = program(code).ok().lines
    assert heading.split() == ["worker", "pid", "started", "by", "expected", "driver", "device", "inherited", "gpu"]
    assert first.split()[0] == "0" and first.split()[2:4] == ["forkserver", "clean"] and second.split()[0] == "1"


@pytest.mark.parametrize("context", ["'fork'", "'spawn'", "'forkserver'", "None"])
def test_any_start_method(program: Program, context: str) -> None:
    code = LOADER + (
        f"""
if __name__ == "__main__":
    reports = verify_loader(make(multiprocessing_context={context}))
    assert len({{report.pid for report in reports}}) == 2
    print({{report.start_method for report in reports}})
"""
    )
    default = "forkserver" if sys.version_info >= (3, 14) else "fork"
    expected = default if context == "None" else context.strip("'")
    assert program(code, limit=100).ok().out == f"{{{expected!r}}}\n"


def test_fresh_proves_the_device_of_each_worker(program: Program, simulated_path: str) -> None:
    code = LOADER + (
        """
if __name__ == "__main__":
    init = guard.make_worker_init_fn(load_driver, expect="fresh", device=1)
    reports = verify_loader(make(worker_init_fn=init))
    assert [(report.driver, report.device) for report in reports] == [("active", 1)] * 2
    assert len({report.device_uuid for report in reports}) == 1 and reports[0].device_uuid.startswith("GPU-")
    assert all(report.simulated for report in reports) and "active (simulated)" in str(reports)
    assert guard.status().driver == "absent"
"""
    )
    program(code, LD_LIBRARY_PATH=simulated_path, CUDA_FORK_GUARD_SIM="devices=2").ok()


def test_an_inherited_worker_is_an_error_that_names_it(program: Program) -> None:
    code = LOADER + (
        """
if __name__ == "__main__":
    assert use_driver.wake() == 0
    loader = make(multiprocessing_context="fork")
    try:
        verify_loader(loader)
    except guard.InheritedCudaError as error:
        print(error)
    assert loader.worker_init_fn is None and left.children() == []
    # As cpu-only the same workers are what they should be.
    init = guard.make_worker_init_fn(expect="cpu-only")
    reports = verify_loader(make(multiprocessing_context="fork", worker_init_fn=init))
    assert [(report.inherited, report.tripwire) for report in reports] == [(True, "armed")] * 2
"""
    )
    told = program(code).ok().out
    assert told.startswith("[CFG201]") and "use_driver.py:17" in told
    assert "loader:  worker 0 of 2; 2 of its workers failed to be verified" in told


def test_a_wrong_device_is_an_error(program: Program, simulated_path: str) -> None:
    code = LOADER + (
        """
if __name__ == "__main__":
    try:
        verify_loader(make(worker_init_fn=guard.make_worker_init_fn(expect="fresh", device=5)))
    except guard.WrongDeviceError as error:
        print(error)
"""
    )
    told = program(code, LD_LIBRARY_PATH=simulated_path).ok().out
    assert told.startswith("[CFG203] device 5 does not exist")


def test_a_server_that_is_not_clean(program: Program) -> None:
    code = LOADER + (
        """
if __name__ == "__main__":
    loader = make(multiprocessing_context=guard.get_context(preload=("torch", "wakes_cuda")))
    try:
        verify_loader(loader)
    except guard.ForkServerNotCleanError as error:
        print(str(error).splitlines()[0])
    assert loader.worker_init_fn is None and left.children() == []
"""
    )
    assert "'wakes_cuda' woke CUDA" in program(code).ok().out


def test_the_loader_s_own_init_function_runs_after_it(program: Program) -> None:
    code = LOADER + (
        """
class Woken(Pids):
    def __getitem__(self, index): return use_driver.CODE
def wake(worker_id):
    use_driver.CODE = use_driver.wake() + 40 + worker_id
if __name__ == "__main__":
    for init in (wake, guard.make_worker_init_fn(wake)):
        loader = DataLoader(
            Woken(), num_workers=2, worker_init_fn=init, multiprocessing_context=guard.get_context(preload=("torch",))
        )
        assert [report.driver for report in verify_loader(loader)] == ["absent"] * 2
        assert loader.worker_init_fn is init
        assert pids(loader) == {40, 41}
"""
    )
    program(code).ok()


def test_persistent_workers_are_kept_and_asked_only_once(program: Program) -> None:
    code = LOADER + (
        """
if __name__ == "__main__":
    loader = make(persistent_workers=True)
    verified = {report.pid for report in verify_loader(loader)}
    assert pids(loader) == pids(loader) == verified
    try:
        verify_loader(loader)
    except ValueError as error:
        print(error)
"""
    )
    assert "run already" in program(code).ok().out


def test_the_program_s_random_numbers_are_the_same_as_without_it(program: Program) -> None:
    code = LOADER + (
        """
import torch
def order(verify, generator, persistent):
    torch.manual_seed(3)
    if generator is not None: generator.manual_seed(4)
    loader = DataLoader(
        range(20), num_workers=1, shuffle=True, generator=generator, persistent_workers=persistent,
        multiprocessing_context=guard.get_context(preload=("torch",)),
    )
    if verify: verify_loader(loader)
    return [int(number) for batch in loader for number in batch], torch.rand(1)
if __name__ == "__main__":
    for generator in (None, torch.Generator()):
        for persistent in (False, True):
            assert order(True, generator, persistent) == order(False, generator, persistent), (generator, persistent)
"""
    )
    program(code).ok()


def test_a_worker_that_is_killed_is_not_waited_for(program: Program) -> None:
    code = LOADER + (
        """
def die():
    os.kill(os.getpid(), signal.SIGKILL)
class Killed:
    def __reduce__(self): return die, ()
class Deadly(Pids):
    def __getstate__(self): return {"killed": Killed()}
if __name__ == "__main__":
    loader = DataLoader(Deadly(), num_workers=2, multiprocessing_context=guard.get_context(preload=("torch",)))
    try:
        verify_loader(loader)
    except guard.WorkerError as error:
        print(error)
"""
    )
    told = program(code).ok().out
    # Both are killed, and either may be seen first.
    assert re.match(r"\[CFG206\] worker [01] of 2 \(pid \d+\) ended with exit code -9 ", told)


def test_no_workers(program: Program) -> None:
    code = """
    from cuda_fork_guard.integrations.torch import verify_loader
    from torch.utils.data import DataLoader
    reports = verify_loader(DataLoader(range(3)))
    assert reports == ()
    print(reports)
    """
    assert program(code).ok().out.startswith("no workers")

"""verify_ranks under real torchrun: two nodes of two processes on this machine, gloo on the CPU, simulated GPUs."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from support.child import Finished, environment
from support.program import Program

pytest.importorskip("torch")
pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ranks are verified on Linux"),
    pytest.mark.timeout(240),
]

PRELOADS = Path(__file__).parent.parent / "start_methods" / "preloads"
LIMIT = 200

SET_UP = """
import os, signal, sys
import cuda_fork_guard as guard
import torch.distributed as dist
import use_driver
from cuda_fork_guard.integrations.torch import verify_ranks
from torch.utils.data import DataLoader
rank = int(os.environ["RANK"])
restarts = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
def say(*words):
    # One write a line: four processes share the stream.
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def torchrun(folder: Path, code: str, *, restarts: int = 0, **variables: str) -> list[Finished]:
    """Two agents, as on two nodes. Each is killed with all it started if it does not end in time."""
    (folder / "program.py").write_text(SET_UP + textwrap.dedent(code), encoding="utf-8")
    port = free_port()
    agents = []
    for node in range(2):
        command = [
            *(sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=2", "--rdzv-backend=c10d"),
            *(f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=verify", "--local-addr=127.0.0.1"),
            *(f"--max-restarts={restarts}", "--monitor-interval=0.2"),
            f"--rdzv-conf=is_host={int(node == 0)}",
            "program.py",
        ]
        env = environment(PYTHONPATH=str(PRELOADS), OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo", **variables)
        agents.append(
            subprocess.Popen(
                command,
                cwd=folder,
                env=env,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        )
    try:
        told = [agent.communicate(timeout=LIMIT) for agent in agents]
    finally:
        for agent in agents:
            try:
                os.killpg(agent.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    return [Finished(agent.returncode, *words) for agent, words in zip(agents, told, strict=True)]


def rows(finished: list[Finished]) -> list[list[str]]:
    """The lines of the one table, from whichever agent has rank 0."""
    tables = [
        one.lines[start:] for one in finished for start, line in enumerate(one.lines) if line.startswith("rank  node")
    ]
    assert len(tables) == 1, finished
    return [line.split() for line in tables[0] if line[:4].strip().isdigit()]


def test_four_ranks_on_two_nodes_with_their_loaders_workers(tmp_path: Path) -> None:
    code = """
    if __name__ == "__main__":
        dist.init_process_group("gloo")
        use_driver.library()
        loader = DataLoader(range(4), num_workers=2, multiprocessing_context=guard.get_context(preload=("torch",)))
        reports = verify_ranks(loader, expect="fresh")
        assert [found.rank for found in reports] == [0, 1, 2, 3] and len({found.pid for found in reports}) == 4
        workers = {worker.pid for found in reports for worker in found.workers}
        assert len(workers) == 8
        dist.barrier()
        say("verified", rank)
        dist.destroy_process_group()
    """
    finished = torchrun(tmp_path, code, CUDA_FORK_GUARD_SIM="devices=2")
    assert [one.code for one in finished] == [0, 0], finished
    assert sum(one.out.count("verified") for one in finished) == 4
    table = rows(finished)
    assert [row[0] for row in table if row[2] == "-"] == ["0", "1", "2", "3"]
    assert len({row[1] for row in table}) == 2, "two nodes"
    # Each rank on the device of its LOCAL_RANK, its workers clean.
    own = [row for row in table if row[2] == "-"]
    assert [row[8] for row in own] == ["0", "1", "0", "1"] and all(row[5] == "fresh" for row in own), table
    assert len(table) == 12


def test_an_error_on_one_rank_is_an_error_on_all(tmp_path: Path) -> None:
    code = """
    if __name__ == "__main__":
        dist.init_process_group("gloo")
        if rank == 2:
            use_driver.wake()
        try:
            verify_ranks()
        except guard.WorkerNotCleanError as error:
            say("refused on", rank, str(error).splitlines()[0])
        dist.barrier()
        dist.destroy_process_group()
    """
    finished = torchrun(tmp_path, code)
    assert [one.code for one in finished] == [0, 0], finished
    told = [line for one in finished for line in one.lines if line.startswith("refused on")]
    assert sorted(line.split()[2] for line in told) == ["0", "1", "2", "3"]
    assert all("[CFG202] rank 2 of 4 on " in line for line in told), told
    assert [row[0] for row in rows(finished) if "[CFG202]" in row] == ["2"]


def test_two_ranks_on_one_gpu(tmp_path: Path) -> None:
    code = """
    if __name__ == "__main__":
        dist.init_process_group("gloo")
        use_driver.library()
        try:
            verify_ranks(expect="fresh", device=0)
        except guard.WrongDeviceError as error:
            say("refused", error)
        dist.barrier()
        dist.destroy_process_group()
    """
    finished = torchrun(tmp_path, code, CUDA_FORK_GUARD_SIM="devices=2")
    assert [one.code for one in finished] == [0, 0], finished
    assert sum(one.out.count("refused [CFG203] ranks 0 and 1 on ") for one in finished) == 4, finished


def test_a_rank_that_is_killed_and_restarted(tmp_path: Path) -> None:
    """The elastic agents start all ranks again; the second time all are verified."""
    code = """
    if __name__ == "__main__":
        dist.init_process_group("gloo")
        dist.barrier()
        if rank == 1 and not os.path.exists("killed"):  # the ranks may move to the other node when they restart
            open("killed", "x").close()
            os.kill(os.getpid(), signal.SIGKILL)
        reports = verify_ranks()
        dist.barrier()
        say("verified", rank, "after", restarts, "restarts", len({found.pid for found in reports}))
        dist.destroy_process_group()
    """
    # Torch 2.13's agents keep one store over restarts, in which gloo finds the addresses of the ranks that are gone.
    finished = torchrun(tmp_path, code, restarts=3, TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1")
    assert [one.code for one in finished] == [0, 0], finished
    told = sorted(line for one in finished for line in one.lines if line.startswith("verified"))
    assert [line.split()[1] for line in told] == ["0", "1", "2", "3"], finished
    assert all(line.endswith("restarts 4") for line in told), told
    assert max(int(line.split()[3]) for line in told) >= 1 and (tmp_path / "killed").exists()
    assert [row[0] for row in rows(finished)] == ["0", "1", "2", "3"]


def test_without_a_process_group(program: Program) -> None:
    code = """
    from cuda_fork_guard.integrations.torch import verify_ranks
    try:
        verify_ranks()
    except ValueError as error:
        print(error)
    """
    assert "init_process_group" in program(code).ok().out

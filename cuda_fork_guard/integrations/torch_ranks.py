"""``verify_ranks``: every rank of a ``torch.distributed`` job, on every node, and the workers of its loader."""

from __future__ import annotations

import os
import socket
from typing import Any, NamedTuple

import torch.distributed
from torch.utils.data import DataLoader

from cuda_fork_guard import WorkerReport, errors, verify_worker
from cuda_fork_guard.errors import CudaForkGuardError, WrongDeviceError
from cuda_fork_guard.integrations import report_table
from cuda_fork_guard.integrations.torch_loader import verify_loader


class RankReport(NamedTuple):
    """What one rank found. ``report`` is None if it is not what was expected: then ``kind`` and ``text`` say why."""

    rank: int
    node: str
    pid: int
    report: WorkerReport | None
    workers: tuple[WorkerReport, ...]
    kind: str
    text: str


class RankReports(tuple[RankReport, ...]):
    """One report a rank, in the ranks' order; ``str()`` is a table of all ranks and workers."""

    __slots__ = ()

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = []
        for found in self:
            if found.report is None:
                rows.append((str(found.rank), found.node, "-", str(found.pid), *("-",) * 5, found.text.splitlines()[0]))
                continue
            rows.append((str(found.rank), found.node, "-", *report_table.cells(found.report)))
            for number, worker in enumerate(found.workers):
                rows.append((str(found.rank), found.node, str(number), *report_table.cells(worker)))
        return report_table.lines(("rank", "node", "worker", *report_table.HEADINGS), rows)


def verify_ranks(
    loader: DataLoader[Any] | None = None, *, expect: str = "clean", device: int | None = None
) -> RankReports:
    """Verify this process as ``verify_worker`` does, gather what all ranks found, print one table on rank 0.

    To be called on every rank. With ``loader`` its workers are verified too. ``expect="fresh"`` without ``device`` means
    the rank's ``LOCAL_RANK``; two ranks whose contexts are on the same GPU are an error. The gathering itself goes over
    gloo and uses no CUDA, whatever the job's own backend.

    :raises CudaForkGuardError: on all ranks alike, if any rank or worker is not what was expected; the text says which.
    :raises ValueError: ``torch.distributed`` is not initialized, or bad arguments.
    """
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        raise ValueError("verify_ranks needs a process group: call torch.distributed.init_process_group first")
    if expect == "fresh" and device is None:
        device = int(os.environ.get("LOCAL_RANK", "0"))
    mine = _look(loader, expect, device)
    gathered: list[Any] = [None] * torch.distributed.get_world_size()
    group = None if torch.distributed.get_backend() == "gloo" else torch.distributed.new_group(backend="gloo")
    try:
        torch.distributed.all_gather_object(gathered, mine, group=group)
    finally:
        if group is not None:
            torch.distributed.destroy_process_group(group)
    reports = RankReports(gathered)
    if mine.rank == 0:
        print(reports, flush=True)
    _raise_first(reports)
    _raise_shared_device(reports)
    return reports


def _look(loader: DataLoader[Any] | None, expect: str, device: int | None) -> RankReport:
    found = RankReport(torch.distributed.get_rank(), _node(), os.getpid(), None, (), "", "")
    try:
        report = verify_worker(expect, device=device)
        workers = verify_loader(loader) if loader is not None else ()
    # Not raised here, whatever it is: the other ranks wait for this one's answer.
    except CudaForkGuardError as error:
        return found._replace(kind=type(error).__name__, text=str(error))
    except Exception as error:
        return found._replace(kind="WorkerError", text=f"[CFG206] can't be verified: {type(error).__name__}: {error}")
    return found._replace(report=report, workers=tuple(workers))


def _node() -> str:
    """The host's name; under torchrun with the node's number, since several may share a host."""
    number = os.environ.get("GROUP_RANK")
    return socket.gethostname() if number is None else f"{socket.gethostname()}/{number}"


def _raise_first(reports: RankReports) -> None:
    failed = [found for found in reports if found.report is None]
    if not failed:
        return
    first = failed[0]
    code, _, text = first.text.partition(" ")
    kind = getattr(errors, first.kind, CudaForkGuardError)
    raise kind(f"{code} rank {first.rank} of {len(reports)} on {first.node}: {text}{_others(failed)}")


def _others(failed: list[RankReport]) -> str:
    return f"\n  also:    rank {', '.join(str(found.rank) for found in failed[1:])}" if failed[1:] else ""


def _raise_shared_device(reports: RankReports) -> None:
    seen: dict[str, RankReport] = {}
    for found in reports:
        report = found.report
        if report is None or report.device_uuid is None:
            continue
        # A GPU's own number is the only one in the world, a simulated one's is the same everywhere.
        uuid = f"{report.device_uuid}, simulated on {found.node}" if report.simulated else report.device_uuid
        other = seen.setdefault(uuid, found)
        if other is not found:
            raise WrongDeviceError(
                f"[CFG203] ranks {other.rank} and {found.rank} on {found.node} are on the same GPU ({uuid}).\n"
                "  do:      verify_ranks(expect='fresh', device=…) with a device of its own on each rank"
            )

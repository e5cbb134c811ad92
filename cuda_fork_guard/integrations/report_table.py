"""Worker reports as a table."""

from __future__ import annotations

from cuda_fork_guard import WorkerReport
from cuda_fork_guard.cli.table import table

_UNLIMITED = 1 << 30
_HEADINGS = ("pid", "started by", "expected", "driver", "device", "inherited", "gpu")


class WorkerReports(tuple[WorkerReport, ...]):
    """One report a worker, in the workers' order; ``str()`` is a table."""

    __slots__ = ()

    def __str__(self) -> str:
        if not self:
            return "no workers: the data is loaded in the program's own process"
        rows = [(str(number), *cells(report)) for number, report in enumerate(self)]
        return lines(("worker", *_HEADINGS), rows)


def cells(report: WorkerReport) -> tuple[str, ...]:
    """What a row says of one process."""
    return (
        str(report.pid),
        report.start_method or "-",
        report.expect,
        (report.driver or "unknown") + (" (simulated)" if report.simulated else ""),
        "-" if report.device is None else str(report.device),
        {True: "yes", False: "no", None: "unknown"}[report.inherited],
        report.device_uuid or "-",
    )


def lines(headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """The table, numbers to the right."""
    right = frozenset(
        column for column, heading in enumerate(headings) if heading in ("worker", "rank", "pid", "device")
    )
    return "\n".join(table(headings, rows, width=_UNLIMITED, right=right))


HEADINGS = _HEADINGS

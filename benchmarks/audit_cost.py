"""What the audit hook costs events that are none of its business, beside a process that never had it."""

from __future__ import annotations

from .alternate import alternate, workers
from .table import Row, row

# Operation of the worker, how many make one sample (some 100 µs), what it is.
EVENTS = (
    ("nothing", 10_000, "an empty loop, for comparison"),
    ("getframe", 1_000, "sys._getframe()"),
    ("code", 1_000, "function.__code__"),
    ("open", 100, "os.open + os.close"),
    ("import", 10, "import of a module that is not there"),
)


def measure(pairs: int) -> list[Row]:
    rows = []
    with workers((), ("cuda_fork_guard",), ()) as (off, on, other):
        for operation, count, name in EVENTS:
            measured = alternate(off.sampler(operation, count), on.sampler(operation, count), pairs)
            noise = alternate(off.sampler(operation, count), other.sampler(operation, count), pairs)
            rows.append(row(f"audited event: {name}" if operation != "nothing" else name, measured, noise))
    return rows

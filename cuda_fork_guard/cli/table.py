"""Plain tables for a terminal or a file."""

from __future__ import annotations

import os
import sys

_GAP = "  "
_UNLIMITED = 1 << 30


def output_width() -> int:
    """Lines are cut for people only: a file or a pipe gets them whole."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        return _UNLIMITED


def table(headings: tuple[str, ...], rows: list[tuple[str, ...]], *, width: int, right: frozenset[int]) -> list[str]:
    """Columns as wide as they need; those in `right` are set to the right; the last one is cut at `width`."""
    lines = [headings, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings) - 1)]
    out: list[str] = []
    for line in lines:
        cells = [
            cell.rjust(size) if column in right else cell.ljust(size)
            for column, (cell, size) in enumerate(zip(line[:-1], widths, strict=True))
        ]
        full = _GAP.join([*cells, line[-1]]).rstrip()
        out.append(full if len(full) <= width else full[: max(width - 3, 0)] + "...")
    return out

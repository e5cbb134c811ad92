"""Small files of the system, read without surprises."""

from __future__ import annotations

import os

from cuda_fork_guard.procfs import text

_LIMIT = 65536


def read(path: str) -> str | None:
    """Safe to show; None if it can't be read."""
    try:
        with open(path, "rb") as file:
            return "\n".join(text(line) for line in file.read(_LIMIT).rstrip(b"\0\n").replace(b"\t", b" ").split(b"\n"))
    except OSError:
        return None


def first_line(path: str) -> str | None:
    content = read(path)
    return content.split("\n", 1)[0].strip() if content else None


def names(path: str) -> list[str]:
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []

"""The exit codes of every command, in one place."""

from __future__ import annotations

CLEAN = 0  # looked everywhere, found nothing
FOUND = 1  # found what the command looks for; wins over NO_VERDICT
USAGE = 2  # argparse's own code for bad usage
NO_VERDICT = 3  # could not look, or not everywhere


def verdict(*, found: bool, complete: bool) -> int:
    if found:
        return FOUND
    return CLEAN if complete else NO_VERDICT

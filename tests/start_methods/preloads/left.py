"""What a program leaves behind: for the child programs of these tests."""

from __future__ import annotations

import os


def children() -> list[str]:
    """Command lines of this process's children, zombies included, without multiprocessing's resource tracker."""
    found = []
    for pid in os.listdir("/proc"):
        if not pid.isdigit():
            continue
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
            with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
                command = file.read().replace("\0", " ")
        except OSError:  # ended meanwhile
            continue
        if parent == os.getpid() and "resource_tracker" not in command:
            found.append(command or f"zombie {pid}")
    return found


def descriptors() -> int:
    """How many this process has open, but for the one that counts them."""
    return len(os.listdir("/proc/self/fd")) - 1

"""Says in which process it was imported: a line a process."""

from __future__ import annotations

import os

IMPORTED_BY = os.getpid()
with open(os.environ["COUNTED"], "a", encoding="utf-8") as file:
    file.write(f"{IMPORTED_BY}\n")

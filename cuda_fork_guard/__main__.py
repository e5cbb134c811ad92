"""`python -m cuda_fork_guard`."""

from __future__ import annotations

import sys

from cuda_fork_guard.cli import main

if __name__ == "__main__":
    sys.exit(main())

"""Shared by all tests: each one that is about a process runs a child program (support.child), never this process."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

pytest_plugins = ["support.compiled"]

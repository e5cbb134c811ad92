"""Child programs of these tests may import the preloads of tests/start_methods: use_driver above all."""

from __future__ import annotations

from start_methods.conftest import program, simulated_path

__all__ = ["program", "simulated_path"]

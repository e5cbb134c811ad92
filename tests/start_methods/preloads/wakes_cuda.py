"""Calls cuInit while it is imported, two calls down."""

from __future__ import annotations

from use_driver import wake


def probe() -> int:
    return wake()


CODE = probe()

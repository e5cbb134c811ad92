"""Calls whose every argument and result is known, and entries that a compiler doesn't make."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.tripwire import Programs

SCENARIOS = (
    "signatures",
    "registers",
    "registers_without_xsave",
    "odd_entries",
    "exception_through_callback",
    "broken_tables",
    "shuffled_tables",
)


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(programs: Programs, name: str) -> None:
    programs.scenario(programs.fake, name)


def test_uprobe_while_armed(programs: Programs) -> None:
    programs.scenario(programs.fake, "uprobe_while_armed")


def test_uprobe_while_armed_on_real_driver(programs: Programs, a_real_library: Path) -> None:
    programs.scenario(a_real_library, "uprobe_while_armed")

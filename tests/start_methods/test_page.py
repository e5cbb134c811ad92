"""docs/start-methods.md and the tests of claims are about the same things."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "start-methods.md"


def test_each_row_is_a_test_and_each_test_a_row() -> None:
    sources = [path.read_text(encoding="utf-8") for path in HERE.glob("test_claims*.py")]
    tests = {name for source in sources for name in re.findall(r"^def (test_claim_\w+)", source, re.MULTILINE)}
    rows = set(re.findall(r"`(test_claim_\w+)`", PAGE.read_text(encoding="utf-8")))
    assert len(tests) > 20
    assert rows == tests

#!/usr/bin/env python3
"""Fail if a test was skipped in every one of several pytest runs: such a test tests nothing.

    scripts/skipped_everywhere.py [--excuse REGEX]... REPORT.xml...

The reports are JUnit XML files. A test whose every reason matches an excuse is named, but is no failure.
"""

from __future__ import annotations

import argparse
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from pathlib import Path

Outcomes = dict[tuple[str, str], list[str | None]]  # (module and class, test) -> reason for each skip, None for a run


def outcomes(reports: Iterable[Path]) -> Outcomes:
    found: Outcomes = {}
    for report in reports:
        for case in ElementTree.parse(report).iter("testcase"):
            skip = case.find("skipped")
            expected_failure = skip is not None and skip.get("type") == "pytest.xfail"
            reason = None if skip is None or expected_failure else (skip.get("message") or "no reason given")
            found.setdefault((case.get("classname", ""), case.get("name", "")), []).append(reason)
    return found


def never_run(found: Outcomes) -> dict[str, set[str]]:
    """Test -> its reasons. A module that is skipped whole has no class name and stands for all of its tests."""
    ran = {where for (where, _), reasons in found.items() if None in reasons}
    lost: dict[str, set[str]] = {}
    for (where, name), reasons in found.items():
        whole_module_ran = not where and any(other == name or other.startswith(name + ".") for other in ran)
        if None not in reasons and not whole_module_ran:
            lost[f"{where}::{name}" if where else name] = {reason for reason in reasons if reason is not None}
    return lost


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("reports", nargs="+", type=Path, metavar="REPORT.xml")
    parser.add_argument("--excuse", action="append", default=[], metavar="REGEX", help="a reason that is no failure")
    options = parser.parse_args(arguments)
    found = outcomes(options.reports)
    if not found:
        print("no test in any report", file=sys.stderr)
        return 1
    failures = 0
    for test, reasons in sorted(never_run(found).items()):
        excused = all(any(re.search(excuse, reason) for excuse in options.excuse) for reason in reasons)
        failures += not excused
        print(f"{'not run here' if excused else 'SKIPPED EVERYWHERE'}: {test}: {'; '.join(sorted(reasons))}")
    print(f"{len(found)} tests in {len(options.reports)} runs, {failures} skipped in every one")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

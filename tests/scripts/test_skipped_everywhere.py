"""The check of CI that no test is skipped in every run."""

from __future__ import annotations

import sys
from pathlib import Path

from support.child import Finished, run
from support.markdown import ROOT

PASSED = '<testcase classname="tests.a.test_x" name="{}" time="0"/>'
SKIPPED = '<testcase classname="tests.a.test_x" name="{}"><skipped type="pytest.skip" message="{}"/></testcase>'
MODULE = '<testcase classname="" name="tests.a.{}"><skipped type="pytest.skip" message="no torch"/></testcase>'


def check(folder: Path, reports: list[list[str]], *arguments: str) -> Finished:
    files = []
    for number, cases in enumerate(reports):
        files.append(folder / f"{number}.xml")
        files[-1].write_text("<testsuites><testsuite>" + "".join(cases) + "</testsuite></testsuites>")
    return run([sys.executable, str(ROOT / "scripts" / "skipped_everywhere.py"), *arguments, *map(str, files)])


def test_run_once_is_enough(tmp_path: Path) -> None:
    finished = check(tmp_path, [[PASSED.format("test_a")], [SKIPPED.format("test_a", "no torch")]])
    assert (finished.code, finished.out) == (0, "1 tests in 2 runs, 0 skipped in every one\n")


def test_skipped_in_every_run_is_a_failure_that_names_test_and_reasons(tmp_path: Path) -> None:
    finished = check(tmp_path, [[SKIPPED.format("test_a", "no torch")], [SKIPPED.format("test_a", "no root")]])
    assert finished.code == 1
    assert finished.lines[0] == "SKIPPED EVERYWHERE: tests.a.test_x::test_a: no root; no torch"


def test_an_excuse_has_to_cover_every_reason(tmp_path: Path) -> None:
    reports = [[SKIPPED.format("test_a", "no GPU: none")], [SKIPPED.format("test_a", "no root")]]
    assert check(tmp_path, reports, "--excuse", "^no GPU").code == 1
    excused = check(tmp_path, reports, "--excuse", "^no GPU", "--excuse", "root")
    assert excused.code == 0
    assert excused.lines[0].startswith("not run here: tests.a.test_x::test_a")


def test_a_module_skipped_whole_counts_by_its_tests(tmp_path: Path) -> None:
    assert check(tmp_path, [[MODULE.format("test_x")], [PASSED.format("test_a")]]).code == 0
    assert check(tmp_path, [[MODULE.format("test_x")], [SKIPPED.format("test_a", "no torch")]]).code == 1
    assert check(tmp_path, [[MODULE.format("test_y")], [PASSED.format("test_a")]]).code == 1


def test_an_expected_failure_was_run(tmp_path: Path) -> None:
    case = '<testcase classname="t" name="test_a"><skipped type="pytest.xfail" message="known"/></testcase>'
    assert check(tmp_path, [[case]]).code == 0


def test_no_test_at_all_is_a_failure(tmp_path: Path) -> None:
    assert check(tmp_path, [[]]).code == 1

"""Before cuInit: everything can be asked, everything but a few answers 3, and asking leaves no trace."""

from __future__ import annotations

from support.driver import start
from support.driver.kinds import Driver, simulated

VERSIONS = {"470": 11040, "535": 12020, "550": 12040, "555": 12050}


def test_every_query_answers_not_initialized(driver: Driver) -> None:
    codes = driver.observe(start.codes_before_init)
    assert len(codes) >= 24
    assert {name: code for name, code in codes.items() if code != 3} == {}


def test_version_is_known(driver: Driver) -> None:
    version = driver.observe(start.driver_version)
    assert version == VERSIONS.get(driver.name, 12080 if driver.simulated else version)
    assert version >= 11040


def test_library_is_found_by_its_soname(driver: Driver) -> None:
    assert driver.observe(start.found_by_soname)


def test_queries_leave_no_descriptor_and_no_thread(driver: Driver) -> None:
    seen = driver.observe(start.traces_of_queries)
    assert seen["asked"] >= 24
    assert seen["after"] == seen["before"]


def test_null_version_is_an_invalid_value(driver: Driver) -> None:
    assert driver.observe(start.null_version) == 1


def test_error_names_and_texts(driver: Driver) -> None:
    known, ours = driver.observe(start.error_texts), simulated(0).observe(start.error_texts)
    shared = known.keys() & ours.keys()
    # 470 knows 87 codes; each later driver knows more.
    assert len(shared) >= 87
    assert {code: known[code] for code in shared} == {code: ours[code] for code in shared}


def test_unknown_export_table_is_an_invalid_value(driver: Driver) -> None:
    assert driver.observe(start.export_table) == [1, None]

"""Forked children: new like their parent if that never called cuInit, else refused until they exec."""

from __future__ import annotations

from support.driver import forking
from support.driver.kinds import Driver


def _refused(codes: dict[str, int]) -> bool:
    return set(codes.values()) == {3}


def test_child_of_a_fresh_process_without_gpu(driver_without_gpu: Driver) -> None:
    seen = driver_without_gpu.observe(forking.of_a_fresh_process)
    grandchild = 304 if driver_without_gpu.remembers_cuinit_in_children else 100
    assert seen == {"cuInit": [100, 100, 100], "grandchild": [grandchild] * 2, "parent": 100}


def test_child_of_a_fresh_process_with_gpu(driver_with_gpu: Driver) -> None:
    seen = driver_with_gpu.observe(forking.of_a_fresh_process)
    assert seen == {"cuInit": [0, 0, 0], "grandchild": [3, 3], "parent": 0}


def test_child_after_a_failed_cuinit(driver_without_gpu: Driver) -> None:
    seen = driver_without_gpu.observe(forking.of_a_process_that_called_cuinit)
    code = 304 if driver_without_gpu.remembers_cuinit_in_children else 100
    child = seen["child"]
    assert seen["parent"] == 100
    assert seen["parent afterwards"] == [100, [3, -1]]
    assert _refused(child["before"])
    assert _refused(child["after"])
    assert child["cuInit"] == [code, code]
    assert child["grandchild"] == [code, code, 3]
    assert child["version"] > 0


def test_child_of_an_initialized_process(driver_with_gpu: Driver) -> None:
    seen = driver_with_gpu.observe(forking.of_a_process_that_called_cuinit)
    child = seen["child"]
    assert seen["parent"] == 0
    assert _refused(child["before"])
    assert _refused(child["after"])
    assert child["cuInit"] == [3, 3]
    assert child["grandchild"] == [3, 3, 3]
    assert child["version"] > 0
    code, count = seen["parent afterwards"][1]
    assert (seen["parent afterwards"][0], code) == (0, 0)
    assert count > 0


def test_program_started_by_a_child_has_its_own_driver(driver_with_gpu: Driver) -> None:
    init, code, count = driver_with_gpu.observe(forking.exec_from_a_child)
    assert (init, code) == (0, 0)
    assert count > 0

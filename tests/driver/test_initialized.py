"""An initialized driver: devices, primary contexts, memory, and the codes for what isn't there."""

from __future__ import annotations

import pytest
from support.driver import contexts
from support.driver.kinds import Driver, simulated


def test_devices(driver_with_gpu: Driver) -> None:
    seen = driver_with_gpu.observe(contexts.devices)
    assert (seen["code"], seen["again"]) == (0, 0)
    assert seen["count"] == len(seen["devices"]) > 0
    for ordinal, (codes, device, name, uuid, total, major) in enumerate(seen["devices"]):
        assert codes == [0] * 5
        assert device == ordinal
        assert name
        assert total > 1 << 20
        assert major >= 3
        assert uuid != "00" * 16
    assert len({one[3] for one in seen["devices"]}) == seen["count"]


def test_devices_that_are_not_there(driver_with_gpu: Driver) -> None:
    codes = driver_with_gpu.observe(contexts.wrong_devices)
    assert {name: pair for name, pair in codes.items() if pair != [101, 101]} == {}
    assert len(codes) == 9


def test_life_of_a_primary_context(driver_with_gpu: Driver) -> None:
    seen = driver_with_gpu.observe(contexts.life_of_a_context)
    assert seen == [False, True, True, 0, True, 0, False, 201]


def test_current_contexts_are_a_threads_own(driver_with_gpu: Driver) -> None:
    assert driver_with_gpu.observe(contexts.current_context) == {
        "after retain": None,
        "no context": 201,
        "pop of nothing": 201,
        "push": [0, True, 0, 0],
        "id": [0, True],
        "other thread": None,
        "synchronize": 0,
        "pop": [0, True, None],
        "set": [0, True],
        "unset": [0, None],
    }


def test_a_context_made_anew_has_another_id(driver_with_gpu: Driver) -> None:
    assert driver_with_gpu.observe(contexts.ids_of_contexts)


def test_memory(driver_with_gpu: Driver) -> None:
    assert driver_with_gpu.observe(contexts.memory) == {
        "without context": 201,
        "info": [0, True],
        "nothing": 1,
        "too much": 2,
        "allocate": [0, 0],
        "to device": 0,
        "to host": [0, True],
        "set": 0,
        "is set": True,
        "null to device": 1,
        "from nowhere": 1,
        "free": 0,
        "free again": 1,
        "info later": [0, True],
    }


def test_simulated_memory_ends_where_it_was_allocated() -> None:
    """A GPU maps whole pages, so there a little too much may pass; here each byte too many is an error."""
    codes = simulated(1).observe(contexts.beyond_an_allocation)
    assert codes == {name: [1, 1, 1, 1, 0, 0] for name in ("write", "read", "set")}


def test_threads_share_a_device(driver_with_gpu: Driver) -> None:
    seen = driver_with_gpu.observe(contexts.threads_at_once, 8, 50)
    assert seen == {"wrong": [], "active": False}


@pytest.mark.parametrize("hidden", ["", "-1"])
def test_hidden_devices_are_no_devices(driver_with_gpu: Driver, hidden: str) -> None:
    assert driver_with_gpu.observe(contexts.visible_devices, CUDA_VISIBLE_DEVICES=hidden) == [100, -1]


def test_first_device_alone_is_visible(driver_with_gpu: Driver) -> None:
    assert driver_with_gpu.observe(contexts.visible_devices, CUDA_VISIBLE_DEVICES="0") == [0, 1]


# As NVIDIA documents the variable; strtoul-like numbers and repeated devices as PyTorch found them.
@pytest.mark.parametrize(
    ("value", "numbers"),
    [
        ("2,0", [2, 0]),
        ("0,2,-1,1", [0, 2]),
        ("3,99,1", [3]),
        ("1gpu,2gpu", [1, 2]),
        ("none", []),
        ("1,1", []),
        ("GPU-02", [2]),
        ("GPU-03,GPU-01", [3, 1]),
        ("GPU-0", []),  # four devices begin like this
        ("GPU-00,GPU-00", []),
        ("GPU-01,2", [1]),
        ("MIG-1", []),
    ],
)
def test_lists_of_visible_devices(value: str, numbers: list[int]) -> None:
    driver = simulated(4)
    if not numbers:
        assert driver.observe(contexts.visible_devices, CUDA_VISIBLE_DEVICES=value) == [100, -1]
        return
    seen = driver.observe(contexts.devices, CUDA_VISIBLE_DEVICES=value)["devices"]
    everything = driver.observe(contexts.devices)["devices"]
    assert [one[3] for one in seen] == [everything[number][3] for number in numbers]
    assert [one[1] for one in seen] == list(range(len(numbers)))

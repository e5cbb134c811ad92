"""Where the policy comes from, and what is not one."""

from __future__ import annotations

import pytest

from cuda_fork_guard import policies


@pytest.mark.parametrize(("name", "number"), [("off", 0), ("watch", 1), ("warn", 2), ("block", 3)])
def test_the_four_names(name: str, number: int) -> None:
    assert policies.parse(name) == number
    assert policies.from_variable(name) == (number, None)


@pytest.mark.parametrize("name", ["", "Block", "block ", "on", None, 3, True, ["block"], {}, b"block"])
def test_any_other_argument_is_a_value_error_that_lists_the_choices(
    name: object,
) -> None:
    with pytest.raises(ValueError, match=r"choose one of 'off', 'watch', 'warn', 'block'$"):
        policies.parse(name)


@pytest.mark.parametrize("value", [None, ""])
def test_without_a_value_it_is_watch(value: str | None) -> None:
    assert policies.from_variable(value) == (policies.WATCH, None)


@pytest.mark.parametrize("value", ["0", "1", "blok", "WARN", " warn", "watch,block"])
def test_any_other_value_is_watch_and_a_complaint_that_names_all_three(
    value: str,
) -> None:
    number, complaint = policies.from_variable(value)
    assert number == policies.WATCH
    assert complaint is not None
    assert "CUDA_FORK_GUARD" in complaint and repr(value) in complaint and "off, watch, warn, block" in complaint

"""Frozen values: what dataclasses would give, without their import."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest

from cuda_fork_guard.values import Value, plain


class Point(Value):
    __slots__ = ("x", "y")
    x: int
    y: Any


class Other(Value):
    __slots__ = ("x", "y")


def test_compared_and_hashed_by_class_and_fields() -> None:
    assert Point(x=1, y=(2,)) == Point(y=(2,), x=1)
    assert Point(x=1, y=2) != Point(x=1, y=3)
    assert Point(x=1, y=2) != Other(x=1, y=2)
    assert Point(x=1, y=2) != (1, 2)
    assert len({Point(x=1, y=2), Point(x=1, y=2), Other(x=1, y=2)}) == 2


def test_frozen() -> None:
    point = Point(x=1, y=2)
    with pytest.raises(AttributeError, match="frozen: x can't be set"):
        point.x = 3
    with pytest.raises(AttributeError, match="frozen: y can't be deleted"):
        del point.y
    with pytest.raises(AttributeError):
        point.z = 1  # type: ignore[attr-defined]
    assert point == Point(x=1, y=2)


@pytest.mark.parametrize("fields", [{}, {"x": 1}, {"x": 1, "y": 2, "z": 3}, {"x": 1, "z": 3}])
def test_exactly_its_fields(fields: dict[str, int]) -> None:
    with pytest.raises(TypeError, match="Point takes the fields x, y"):
        Point(**fields)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickled_at_every_protocol(protocol: int) -> None:
    point = Point(x=1, y=Point(x=2, y=("a", None)))
    assert pickle.loads(pickle.dumps(point, protocol)) == point


def test_copied() -> None:
    point = Point(x=1, y=[2])
    assert copy.copy(point) == point
    deep = copy.deepcopy(point)
    assert deep == point and deep.y is not point.y


def test_shown_with_its_fields() -> None:
    assert repr(Point(x=1, y="a")) == "Point(x=1, y='a')"


def test_nested_values_are_plain_json() -> None:
    point = Point(x=1, y=(Point(x=2, y=None), {3: Point(x=4, y=[5])}, "é"))
    expected = {"x": 1, "y": [{"x": 2, "y": None}, {"3": {"x": 4, "y": [5]}}, "é"]}
    assert json.loads(json.dumps(point.as_dict())) == expected
    assert plain(point) == expected

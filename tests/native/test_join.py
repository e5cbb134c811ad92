"""The outer frames of a later stack, put behind an earlier one that was cut."""

from __future__ import annotations

import pytest
from support.core import Core


def stack(*names: str, end: bool = True) -> str:
    """Innermost first; "f5" is line 5 of function f; "gap 3" stands for itself."""
    lines = [name if name.startswith("gap") else f"m.py\t{name[1:]}\t{name[0]}" for name in names]
    return "".join(f"{line}\n" for line in [*lines, *["end"] * end])


def numbered(letter: str, numbers: range) -> list[str]:
    return [f"{letter}{number}" for number in numbers]


CUT = stack(*["a1", "b1", "c1", "d1", "e1"], end=False)


@pytest.mark.parametrize(
    ("later", "joined"),
    [
        # still in the innermost function
        ("a2 b1 c1 d1 e1 g1 h1", "a1 b1 c1 d1 e1 g1 h1"),
        # it returned, and its caller went on
        ("b7 c1 d1 e1 g1 h1", "a1 b1 c1 d1 e1 g1 h1"),
        # deep in another call
        ("x1 y1 z1 b7 c1 d1 e1 g1 h1", "a1 b1 c1 d1 e1 g1 h1"),
        # it was the outermost
        ("c1 d1 e1", "a1 b1 c1 d1 e1"),
    ],
)
def test_where_both_agree_the_outer_frames_are_known(core: Core, later: str, joined: str) -> None:
    assert core("join", CUT, stack(*later.split())) == stack(*joined.split())


@pytest.mark.parametrize("later", ["d2 e1 g1 h1", "d1 e1 g1 h1", "x1", "a1 b1 c1 d2 e2 g1 h1", "c1 d1 e9 g1"])
def test_without_proof_nothing_is_joined(core: Core, later: str) -> None:
    assert core("join", CUT, stack(*later.split())) == CUT


def test_recursion_leaves_open_how_many(core: Core) -> None:
    cut = stack("a1", *["f3"] * 20, end=False)
    later = stack("a2", *["f3"] * 40, "m9", "n9")
    assert core("join", cut, later) == stack("a1", *["f3"] * 20, "gap ?", "m9", "n9")


def test_a_later_stack_with_a_gap(core: Core) -> None:
    later = stack(*["b7", "c1", "d1", "e1", "g1"], "gap 900", "y1", "z1")
    assert core("join", CUT, later) == stack(*["a1", "b1", "c1", "d1", "e1", "g1"], "gap 900", "y1", "z1")


def test_recursion_into_a_gap(core: Core) -> None:
    cut = stack("a1", *["f3"] * 20, end=False)
    later = stack("a2", *["f3"] * 40, "gap 900", "f3", "m9")
    assert core("join", cut, later) == stack("a1", *["f3"] * 20, "gap ?", "f3", "m9")


def test_the_outer_end_has_precedence_where_room_is_short(core: Core) -> None:
    cut = numbered("c", range(100))
    outer = numbered("o", range(92))
    assert core("join", stack(*cut, end=False), stack(*cut[90:], *outer)) == stack(*cut, *outer)
    more = numbered("o", range(95))
    assert core("join", stack(*cut, end=False), stack(*cut[90:], *more)) == stack(*cut, "gap 3", *more[3:])


def test_room_that_is_short_at_a_gap(core: Core) -> None:
    cut = numbered("c", range(100))
    later = [*cut[97:], *numbered("o", range(100)), "gap 7", *numbered("p", range(64))]
    assert core("join", stack(*cut, end=False), stack(*later)) == stack(*cut, "gap 107", *numbered("p", range(64)))


def test_names_that_faulthandler_cut_still_match(core: Core) -> None:
    long = "x" * 600
    rows = [f"{long}.py\t{line}\tf" for line in range(1, 6)]
    cut = "".join(row.replace(f"{long}.py", "x" * 500 + "...") + "\n" for row in rows)
    assert core("join", cut, "\n".join([*rows, "m.py\t1\tmain", "end", ""])) == f"{cut}m.py\t1\tmain\nend\n"


def test_an_incomplete_later_stack_completes_nothing(core: Core) -> None:
    later = stack(*["b7", "c1", "d1", "e1", "g1"], end=False)
    assert core("join", CUT, later) == stack(*["a1", "b1", "c1", "d1", "e1", "g1"], end=False)

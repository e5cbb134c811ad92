"""faulthandler's text, read back."""

from __future__ import annotations

import os

import pytest
from support.core import Core

OTHER, FRAME, CUT, FULL = "0123"


def frame_of(core: Core, line: str) -> tuple[str, int, str]:
    kinds, frame, *rest = core("read_dump", line).split("\n")
    assert kinds == FRAME and rest == [""]
    file, number, function = frame.split("\t")
    return file, int(number), function


@pytest.mark.parametrize(
    ("line", "frame"),
    [
        ('  File "train.py", line 12 in main', ("train.py", 12, "main")),
        ('  File "train.py", line 12 in <module>', ("train.py", 12, "<module>")),
        ('  File "<string>", line ??? in <lambda>', ("<string>", 0, "<lambda>")),
        ("  File ???, line ??? in ???", ("???", 0, "???")),
        (r'  File "/d/pr\xfcf/\u6a21.py", line 3 in \u0394f', ("/d/prüf/模.py", 3, "Δf")),
        (r'  File "/d/\U0001f600.py", line 3 in f', ("/d/😀.py", 3, "f")),
        # bytes of a file name that aren't UTF-8
        (r'  File "/d/\udcff\udc80.py", line 3 in f', (os.fsdecode(b"/d/\xff\x80.py"), 3, "f")),
        # a surrogate that stands for no byte can't be written: its escape remains
        (r'  File "/d/\ud800.py", line 3 in f', (r"/d/\ud800.py", 3, "f")),
        # what faulthandler would never have escaped is a backslash of the file's own
        (r'  File "C\x41\u0041\U00000041.py", line 3 in f', (r"C\x41\u0041\U00000041.py", 3, "f")),
        (r'  File "a\xg1\u12\x", line 3 in f', (r"a\xg1\u12\x", 3, "f")),
        (r'  File "a\U00110000", line 3 in f', (r"a\U00110000", 3, "f")),
        ('  File "a", line 9 in b.py", line 3 in f', ('a", line 9 in b.py', 3, "f")),
        (f'  File "{"x" * 500}...", line 3 in f', ("x" * 500 + "...", 3, "f")),
    ],
)
def test_frames(core: Core, line: str, frame: tuple[str, int, str]) -> None:
    assert frame_of(core, line) == frame


def test_control_characters_come_back_as_they_were(core: Core) -> None:
    kinds, rest = core("read_dump", r'  File "a\x0ab\x7f.py", line 3 in f').split("\n", 1)
    assert (kinds, rest) == (FRAME, "a\nb\x7f.py\t3\tf\n")


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("Stack (most recent call first):", OTHER),
        ("  <no Python frame>", OTHER),
        ("", OTHER),
        ('  File "train.py"', OTHER),
        ('  File "train.py", line ', OTHER),
        ('  File "train.py", line 12', OTHER),
        (", line 1 in f", OTHER),
        ("  ...", CUT),
        ("  <truncated rest of calls>", CUT),
    ],
)
def test_other_lines(core: Core, line: str, kind: str) -> None:
    assert core("read_dump", line) == f"{kind}\n" if line else core("read_dump", line) == "\n"


def test_a_full_stack_says_so_and_keeps_what_it_has(core: Core) -> None:
    lines = "".join(f'  File "a.py", line {number} in f\n' for number in range(1, 200))
    kinds, *frames = core("read_dump", lines).splitlines()
    assert kinds == FRAME * 192 + FULL * 7
    assert frames[-1] == "a.py\t192\tf"


def test_long_names_fill_the_arena_and_not_more(core: Core) -> None:
    lines = "".join(f'  File "{number:0500}.py", line 1 in f\n' for number in range(60))
    kinds, *frames = core("read_dump", lines).splitlines()
    assert kinds == FRAME * len(frames) + FULL * (60 - len(frames))
    assert 40 < len(frames) < 50

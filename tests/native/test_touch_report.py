"""The report's form, and the choice of the user's line."""

from __future__ import annotations

import os

import pytest
from support.core import Core

REPORT = """\
cuda_fork_guard[4242]: [CFG102] CUDA used in a process that was forked after CUDA was initialized; it cannot work there.
  used:    train.py:18 in __getitem__  (torch.cuda._lazy_init, refused by torch)
  forked:  train.py:41 in main         (torch DataLoader, from pid 4200)
  woken:   train.py:12 in main         (model.cuda() -> cuInit, pid 4200)
  do:      return CPU tensors and copy them in the main loop
"""
USED = "train.py:18 in __getitem__  (torch.cuda._lazy_init, refused by torch)"
FORKED = "train.py:41 in main  (torch DataLoader, from pid 4200)"
WOKEN = "train.py:12 in main  (model.cuda() -> cuInit, pid 4200)"
DO = "return CPU tensors and copy them in the main loop"


def report(core: Core, *lines: str, inherited: bool = True) -> str:
    return core("touch_report", 4242, inherited, *lines)


def test_the_contracts_form(core: Core) -> None:
    assert report(core, USED, FORKED, WOKEN, DO) == REPORT


def test_unknown_lines_have_no_column(core: Core) -> None:
    woken = "unknown: CUDA was up before cuda_fork_guard was imported (train.py:9); import it first"
    expected = REPORT.replace("train.py:12 in main         (model.cuda() -> cuInit, pid 4200)", woken)
    assert report(core, USED, FORKED, woken, DO) == expected


def test_empty_lines_are_left_out(core: Core) -> None:
    assert report(core, USED, FORKED, WOKEN, "") == REPORT[: REPORT.index("  do:")]


def test_a_cpu_only_worker_is_not_called_forked(core: Core) -> None:
    first = report(core, USED, FORKED, WOKEN, DO, inherited=False).splitlines()[0]
    assert first == "cuda_fork_guard[4242]: [CFG102] CUDA used in a process that was verified as cpu-only."


def test_columns_count_characters(core: Core) -> None:
    lines = report(core, "prüfung模.py:18 in f  (x)", "train.py:41 in main  (y)", "", "").splitlines()
    assert lines[1].index("(x)") == lines[2].index("(y)")


def test_one_long_place_does_not_move_the_others(core: Core) -> None:
    lines = report(core, "x" * 300 + ".py:18 in f  (x)", "a.py:41 in main  (y)", "b.py:1 in g  (z)", "").splitlines()
    assert lines[2:] == ["  forked:  a.py:41 in main  (y)", "  woken:   b.py:1 in g      (z)"]


def test_the_longest_lines_fit_into_one_write(core: Core) -> None:
    longest = "ü" * 31 + "  (" + "y" * 699 + ")"
    text = report(core, longest, "a.py:1 in f  (" + "z" * 752 + ")", "q" * 767, "r" * 767)
    assert len(text.encode()) < 4096
    assert text.endswith("r" * 767 + "\n") and "z" * 752 + ")\n" in text and len(text.splitlines()) == 5


def frames(*rows: str) -> str:
    return "".join(f"{row}\n" for row in rows)


def place(core: Core, *rows: str, limit: int = 400) -> str:
    return core(
        "user_place", frames(*rows), "/py/lib/", "/py/lib/site-packages/cuda_fork_guard/", "/py/bin/gunicorn", limit
    )


GUARD = "/py/lib/site-packages/cuda_fork_guard/born.py\t3\tasked"
TORCH = "/py/lib/site-packages/torch/cuda/__init__.py\t300\t_lazy_init"
DEBIAN = "/usr/lib/python3/dist-packages/torch/x.py\t30\tg"
STDLIB = "/py/lib/threading.py\t9\trun"
FROZEN = "<frozen importlib._bootstrap>\t241\t_call_with_frames_removed"
LAUNCHER = "/py/bin/gunicorn\t8\t<module>"
USER = "/home/u/train.py\t18\t__getitem__"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ((GUARD, TORCH, STDLIB, USER), "/home/u/train.py:18 in __getitem__"),
        ((USER, "/home/u/other.py\t1\tf"), "/home/u/train.py:18 in __getitem__"),
        ((GUARD, STDLIB, TORCH, DEBIAN), "/py/lib/site-packages/torch/cuda/__init__.py:300 in _lazy_init"),
        ((GUARD, FROZEN, STDLIB), "<frozen importlib._bootstrap>:241 in _call_with_frames_removed"),
        ((GUARD, "<string>\t1\t<module>"), "<string>:1 in <module>"),
        ((GUARD,), "unknown: no Python frame on this thread"),
        ((), "unknown: no Python frame on this thread"),
        (("/py/library/x.py\t1\tf",), "/py/library/x.py:1 in f"),
        # A program that an installer wrote is a package's, wherever it lies.
        ((GUARD, STDLIB, TORCH, LAUNCHER), "/py/lib/site-packages/torch/cuda/__init__.py:300 in _lazy_init"),
        ((GUARD, STDLIB, LAUNCHER), "/py/bin/gunicorn:8 in <module>"),
        ((GUARD, "/py/bin/gunicorn.py\t8\tf", LAUNCHER), "/py/bin/gunicorn.py:8 in f"),
    ],
)
def test_the_users_line(core: Core, rows: tuple[str, ...], expected: str) -> None:
    assert place(core, *rows) == expected


def test_control_characters_reach_no_terminal(core: Core) -> None:
    assert place(core, "a\x1b[2J.py\t3\tf\x07") == "a?[2J.py:3 in f?"


def test_paths_below_the_current_folder_are_relative(core: Core) -> None:
    here = os.getcwd()
    assert place(core, f"{here}/d/train.py\t3\tf") == "d/train.py:3 in f"
    assert place(core, f"{here}x/train.py\t3\tf") == f"{here}x/train.py:3 in f"


def test_cells_of_a_notebook(core: Core) -> None:
    one, two = "/tmp/ipykernel_1/1.py", "/tmp/ipykernel_1/2.py"
    core("set_cells", f"{two}=In[2];{one}=In[1];cut off=")
    try:
        assert place(core, f"{one}\t3\twork") == "cell In[1], line 3 in work"
        assert place(core, f"{two}\t3\t<module>") == place(core, f"{two}\t3\t<cell line: 3>") == "cell In[2], line 3"
        assert place(core, "/tmp/ipykernel_1/3.py\t3\twork") == "/tmp/ipykernel_1/3.py:3 in work"
        assert place(core, "cut off\t3\twork") == "cut off:3 in work"
        core("set_cells", "".join(f"/tmp/ipykernel_1/{number}.py=In[{number}];" for number in range(2000, 0, -1)))
        assert place(core, "/tmp/ipykernel_1/1999.py\t3\twork") == "cell In[1999], line 3 in work"
        assert place(core, f"{one}\t3\twork") == f"{one}:3 in work"  # the oldest are forgotten
    finally:
        core("set_cells", "")


def test_long_names_are_shortened_at_the_end_that_says_less(core: Core) -> None:
    shown = place(core, f"/{'d' * 500}/train.py\t123456\t{'f' * 500}", limit=120)
    assert len(shown) <= 120
    assert shown.startswith("...d") and "/train.py:123456 in fff" in shown and shown.endswith("fff...")
    assert len(place(core, f"/{'ü' * 500}.py\t3\t{'模' * 500}", limit=120).encode()) <= 120

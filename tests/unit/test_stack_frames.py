"""Which frame is the user's line, and how a place is written."""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from cuda_fork_guard import frames
from cuda_fork_guard.frames import Frame

STDLIB = str(Path(os.__file__).parent)
SITE = f"{STDLIB}/site-packages"
GUARD = str(Path(frames.__file__).parent)


def frame(file: str, line: int = 1, function: str = "f") -> Frame:
    return Frame(file=file, line=line, function=function)


USER, OUTER = frame("/home/u/train.py", 12, "main"), frame("/home/u/run.py", 3, "<module>")
TORCH = frame(f"{SITE}/torch/cuda/__init__.py", 300, "_lazy_init")
DEBIAN = frame("/usr/lib/python3/dist-packages/torch/x.py")
THREADING = frame(f"{STDLIB}/threading.py")
FROZEN = frame("<frozen importlib._bootstrap>")
OWN = frame(f"{GUARD}/guard.py")


@pytest.mark.parametrize(
    ("stack", "expected"),
    [
        ((OUTER, USER, TORCH, THREADING, OWN), USER),
        ((THREADING, TORCH, DEBIAN, FROZEN), DEBIAN),
        ((THREADING, FROZEN, OWN), FROZEN),
        ((OWN,), None),
        ((frames.gap(3), TORCH), TORCH),
        ((frames.gap(3),), None),
        ((), None),
    ],
)
def test_user_frame(stack: tuple[Frame, ...], expected: Frame | None) -> None:
    assert frames.user_frame(stack) == expected


@pytest.mark.parametrize(
    ("file", "name"),
    [
        (f"{SITE}/torch/cuda/__init__.py", "torch.cuda.f"),
        ("/usr/lib/python3/dist-packages/torch/x.py", "torch.x.f"),
        (f"{STDLIB}/multiprocessing/pool.py", "multiprocessing.pool.f"),
        ("/home/u/pkg/ops.py", "ops.f"),
        ("<string>", "f"),
        ("", "f"),
        ("relative/ops.py", "relative.ops.f"),
    ],
)
def test_dotted(file: str, name: str) -> None:
    assert frames.dotted(frame(file)) == name


def test_dotted_module_level_is_the_module() -> None:
    assert frames.dotted(frame(f"{SITE}/torch/cuda/__init__.py", 1, "<module>")) == "torch.cuda"


def test_place_is_relative_below_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert frames.place(frame(str(tmp_path / "d" / "train.py"), 12, "main")) == f"d{os.sep}train.py:12 in main"
    assert frames.place(frame(f"{tmp_path}x/train.py", 12, "main")) == f"{tmp_path}x/train.py:12 in main"


def test_source_is_quoted_if_it_can_be_read(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(f"x = 1\n    return model.cuda()\n{'y' * 61}\n{'z' * 60}\ntab = '\t'\n")
    texts = [frames.source(frame(str(file), line)) for line in range(1, 7)]
    assert texts == ["x = 1", "model.cuda()", "", "z" * 60, "", ""]
    assert frames.source(frame("<string>")) == frames.source(frame(str(tmp_path / "none.py"))) == ""


def test_cells_of_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    """GIVEN IPython's table of its cells' files THEN places name the cell."""
    file = "/tmp/ipykernel_4200/1234.py"
    shell = SimpleNamespace(compile=SimpleNamespace(_filename_map={file: 3}))
    ipython = ModuleType("IPython")
    ipython.get_ipython = lambda: shell  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    assert frames.place(frame(file, 2, "<module>")) == "cell In[3], line 2"
    assert frames.place(frame(file, 2, "<cell line: 2>")) == "cell In[3], line 2"
    assert frames.place(frame(file, 2, "main")) == "cell In[3], line 2 in main"
    assert frames.place(frame("/tmp/ipykernel_4200/99.py", 2, "main")) == "/tmp/ipykernel_4200/99.py:2 in main"


@pytest.mark.parametrize("shell", [None, SimpleNamespace(), SimpleNamespace(compile=SimpleNamespace(_filename_map=7))])
def test_an_ipython_of_another_kind_names_no_cell(shell: object, monkeypatch: pytest.MonkeyPatch) -> None:
    ipython = ModuleType("IPython")
    ipython.get_ipython = lambda: shell  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    assert frames.cell("/tmp/ipykernel_1/2.py") == ""


def test_cells_of_a_terminal() -> None:
    assert frames.place(frame("<ipython-input-3-0a1b2c>", 2, "<module>")) == "cell In[3], line 2"


def test_from_raw_is_outermost_first_with_the_gap_in_place() -> None:
    rows = (("a.py", 1, "inner"), ("b.py", 2, "middle"), ("c.py", 3, "<module>"))
    inner, middle, outer = (Frame(file=f, line=n, function=name) for f, n, name in rows)
    assert frames.from_raw(rows, 0, 0) == (outer, middle, inner)
    assert frames.from_raw(rows, 2, 812) == (outer, frames.gap(812), middle, inner)
    assert str(frames.gap(812)) == "(812 frames left out)"
    assert str(frames.gap(-1)) == "(frames left out)"


def test_a_frame_is_a_frozen_value() -> None:
    assert pickle.loads(pickle.dumps(USER)) == USER and hash(USER) == hash(frame("/home/u/train.py", 12, "main"))
    assert USER.as_dict() == {"file": "/home/u/train.py", "line": 12, "function": "main"}
    with pytest.raises(AttributeError):
        USER.line = 3

"""``demo`` on whatever machine this is."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from support.child import environment, python, run

from cuda_fork_guard.testing import driver_folder

DEMO = [sys.executable, "-m", "cuda_fork_guard", "demo"]

UNSUPPORTED = """
import sys
sys.modules["cuda_fork_guard._native"] = None
from cuda_fork_guard.cli import main
sys.exit(main(["demo"]))
"""

NO_SCENE = """
import sys
from cuda_fork_guard.cli import demo, main
demo._scenes = lambda: ()
sys.exit(main(["demo"]))
"""

BROKEN = """
import sys
from cuda_fork_guard.cli import demo, demo_programs, main
demo_programs.REFUSED = "print('[CFG101] fork refused, or so it says')"
import importlib
importlib.reload(demo)
demo._scenes = lambda: demo._SCENES[:1]
sys.exit(main(["demo"]))
"""


def test_shows_every_scene_and_leaves_no_process() -> None:
    mark = f"demo-of-{os.getpid()}"
    finished = run(DEMO, limit=110, env=environment(CUDA_FORK_GUARD_TEST=mark)).ok()
    assert finished.err == ""
    assert finished.out.splitlines()[-1] == "Everything went as it should."
    for words in (
        "[CFG101] fork refused",
        "[CFG102] CUDA used",
        "  used:    train.py:14 in use_cuda",
        "inherited: False",
    ):
        assert words in finished.out
    assert not [process for process in Path("/proc").glob("[0-9]*") if mark.encode() in _environment_of(process)]


def _environment_of(process: Path) -> bytes:
    try:
        return (process / "environ").read_bytes()
    except OSError:  # it has ended, or is another user's
        return b""


@pytest.mark.skipif(os.path.exists("/proc/driver/nvidia"), reason="this machine may have a GPU of its own")
def test_a_simulated_driver_on_the_loaders_path_is_not_called_real() -> None:
    finished = python(NO_SCENE, env=environment(LD_LIBRARY_PATH=driver_folder())).ok()
    assert finished.lines[0].startswith("Driver: SIMULATED")


def test_has_no_verdict_where_the_platform_is_not_supported() -> None:
    finished = python(UNSUPPORTED)
    assert finished.code == 3
    assert finished.out == ""
    assert finished.err.startswith("demo: ")


def test_fails_when_a_scene_does_not_show_what_it_should() -> None:
    finished = python(BROKEN)
    assert finished.code == 1
    assert finished.err == "demo: not as it should be: block: an unsafe fork is refused\n"

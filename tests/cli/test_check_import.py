"""``check-import``: real packages of a few lines, each imported in a fresh process."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from support.child import Finished, environment, run

WAKES = "import ctypes\n\n\ndef ask():\n    return ctypes.CDLL('libcuda.so.1').cuInit(0)\n"


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    files = {
        "clean.py": "X = 1\n",
        "pkg/__init__.py": "from pkg import ops\n",
        "pkg/ops.py": "from pkg import probe\n\nANSWER = probe.ask()\n",
        "pkg/probe.py": WAKES,
        "optional.py": "try:\n    import extra\nexcept ImportError:\n    extra = None\nelse:\n    import pkg\n",
        "broken.py": "import no_such_module_anywhere\n",
        "ends.py": "import os\nos._exit(3)\n",
        "dies.py": "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n",
        "leaves.py": "import sys\nsys.exit('not here')\n",
        "waits.py": "import threading\nthreading.Event().wait()\n",
        "talks.py": "print('hello from the module')\n",
        "töne.py": "import pkg\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def check(folder: Path, *arguments: str) -> Finished:
    command = [sys.executable, "-m", "cuda_fork_guard", "check-import", "--driver", "simulated", *arguments]
    return run(command, cwd=folder, env=environment(LD_LIBRARY_PATH=None))


def answers(done: Finished) -> dict[str, Any]:
    found = json.loads(done.out)
    assert found["schema"] == 1 and found["driver"] == "simulated"
    return {answer["module"]: answer for answer in found["modules"]}


def test_clean(packages: Path) -> None:
    done = check(packages, "clean", "json")
    assert (done.code, done.err) == (0, "")
    assert "clean: clean\njson: clean\n" in done.out


def test_an_import_that_wakes_cuda_is_named_with_its_chain(packages: Path) -> None:
    done = check(packages, "pkg")
    assert (done.code, done.err) == (1, "")
    assert "pkg: calls cuInit" in done.out
    assert "pkg/__init__.py:1 -> pkg/ops.py:3" in done.out


def test_only_with_the_optional_package(packages: Path) -> None:
    assert check(packages, "optional").code == 0
    (packages / "extra.py").write_text("", encoding="utf-8")
    done = check(packages, "optional")
    assert done.code == 1 and "optional.py:6 -> pkg/__init__.py:1 -> pkg/ops.py:3" in done.out


def test_no_verdict_says_why(packages: Path) -> None:
    done = check(packages, "--json", "broken", "ends", "dies", "leaves", "no.such.module")
    assert done.code == 3
    found = answers(done)
    assert {answer["verdict"] for answer in found.values()} == {"no verdict"}
    for module, words in {
        "broken": "No module named 'no_such_module_anywhere'",
        "ends": "ended with exit code 3",
        "dies": "SIGSEGV",
        "leaves": "SystemExit: not here",
        "no.such.module": "No module named 'no'",
    }.items():
        assert words in found[module]["error"] and words in done.err


def test_a_finding_wins_over_no_verdict(packages: Path) -> None:
    assert check(packages, "broken", "pkg", "clean").code == 1


def test_an_import_that_never_ends(packages: Path) -> None:
    done = check(packages, "--timeout", "2", "waits")
    assert done.code == 3 and "not imported within 2 s" in done.err


def test_a_module_that_talks_does_not_spoil_the_data(packages: Path) -> None:
    found = answers(check(packages, "--json", "talks", "töne"))
    assert found["talks"]["called"] is False and found["töne"]["called"] is True
    assert found["töne"]["origin"]["how"] == "hook" and found["töne"]["simulated"] is True


@pytest.mark.parametrize("words", [[], ["os; import x"], ["--timeout", "-1", "os"], ["--driver", "other", "os"]])
def test_bad_usage(words: list[str], packages: Path) -> None:
    command = [sys.executable, "-m", "cuda_fork_guard", "check-import", *words]
    done = run(command, cwd=packages)
    assert done.code == 2 and done.out == "" and "Traceback" not in done.err


def test_a_taken_hook_gives_no_verdict(packages: Path) -> None:
    command = [sys.executable, "-m", "cuda_fork_guard", "check-import", "--driver", "simulated", "clean"]
    done = run(command, cwd=packages, env=environment(CUDA_INJECTION64_PATH="/opt/profiler/libprofiler.so"))
    assert done.code == 3 and "/opt/profiler/libprofiler.so" in done.err

"""One stack is read at a time; forks, and the interpreter's end, in the middle of that."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.child import run

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "csrc"
CORE = ("python_dump", "dump_line", "python_stack", "safe_output", "fork_state")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    made = tmp_path_factory.mktemp("claim") / "dump_claim"
    sources = [str(HERE / "dump_claim.cpp"), *(str(SOURCES / "core" / f"{name}.cpp") for name in CORE)]
    flags = ["-std=c++17", "-D_GNU_SOURCE", "-O1", "-fsanitize=address,undefined", "-pthread"]
    run([compiler, *flags, "-I", str(SOURCES), "-o", str(made), *sources], limit=120).ok()
    return str(made)


DONE = "1 frames, no reason, open afterwards: 0"


@pytest.mark.parametrize(
    ("what", "told"),
    [
        # the child takes the mark over, closes the file that it inherited, and reads its own stack
        ("fork", [f"child: {DONE}", f"reader: {DONE}"]),
        # but never closes what the program has there
        (
            "taken",
            [
                "child: 0 frames, the program uses the file descriptor number reserved for it, open afterwards: 1",
                f"reader: {DONE}",
            ],
        ),
        (
            "two readers",
            ["second: 0 frames, the GIL was not held and another thread's stack was being read", f"reader: {DONE}"],
        ),
        (
            "end",
            [
                "end came after the reader was let go: 1",
                f"reader: {DONE}",
                "after the end: 0 frames, Python is ending, open afterwards: 0",
            ],
        ),
    ],
)
def test_in_the_middle_of_a_dump(program: str, what: str, told: list[str]) -> None:
    assert sorted(run([program, what], limit=30).ok().lines) == sorted(told)

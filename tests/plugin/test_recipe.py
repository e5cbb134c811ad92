"""The recipe of docs/pytest.md, as it is printed there."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from support.child import Finished, environment, run

PAGE = Path(__file__).parents[2] / "docs" / "pytest.md"
EDITABLE = (
    ("-W", "ignore:Module already imported so cannot be rewritten")
    if "_editable_skbc_cuda_fork_guard" in sys.modules
    else ()
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    program, test = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (tmp_path / "embed.py").write_text(program, encoding="utf-8")
    (tmp_path / "test_embed.py").write_text(test, encoding="utf-8")
    return tmp_path


def session(project: Path, *arguments: str) -> Finished:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments, *EDITABLE]
    return run(command, cwd=project, env=environment(PYTEST_ADDOPTS=None))


def test_without_the_plugin_nobody_notices(project: Path) -> None:
    assert session(project).code == 0


def test_the_plugin_finds_the_fork_unsafe_path(project: Path) -> None:
    done = session(project, "--cuda-fork-guard=warn")
    assert done.code == 1
    assert "[CFG101] fork while CUDA is initialized" in done.out and "[CFG102] CUDA used in a process" in done.out
    for line in ("used:    embed.py:7 in devices", "forked:  embed.py:15 in embed_all", "woken:"):
        assert line in done.out, done.out


def test_block_refuses_the_fork(project: Path) -> None:
    done = session(project, "--cuda-fork-guard=block")
    assert done.code == 1 and "[CFG101] fork refused" in done.out and "[CFG102]" not in done.out

"""Every code block of README.md is run, and what it is said to print is what it prints."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.child import Finished, environment, run
from support.markdown import ROOT, Block, blocks_of

from cuda_fork_guard.testing import driver_folder

README = ROOT / "README.md"
BLOCKS = blocks_of(README)


def _numbers_out(text: str) -> str:
    """Process ids differ from run to run."""
    return re.sub(r"(?<=\[)\d+(?=\])|(?<=pid )\d+", "N", text)


def _said_by(block: Block) -> str:
    """The output block that stands behind it, if there is one."""
    after = BLOCKS[BLOCKS.index(block) + 1 :][:1]
    return after[0].text if after and after[0].language == "text" else ""


def _train(folder: Path, block: Block, **variables: str) -> Finished:
    (folder / "train.py").write_text(block.text, encoding="utf-8")
    # The simulated driver stands where a GPU's would.
    path = environment(LD_LIBRARY_PATH=driver_folder(), **variables)
    return run([sys.executable, "train.py"], limit=110, env=path, cwd=folder)


def _programs() -> list[Block]:
    return [block for block in BLOCKS if block.language == "python"]


@pytest.mark.parametrize("block", _programs(), ids=lambda block: f"line-{block.line}")
def test_programs_print_what_is_said(block: Block, tmp_path: Path) -> None:
    if "torch" in block.text:
        pytest.importorskip("torch")
    finished = _train(tmp_path, block)
    assert finished.code == 0, finished.err
    assert _numbers_out(finished.out + finished.err) == _numbers_out(_said_by(block))


def _policy_by_variable(block: Block, tmp_path: Path) -> None:
    name, policy = block.text.split()[0].split("=")
    finished = _train(tmp_path, _programs()[0], **{name: policy})
    assert finished.code == 1
    said = _said_by(block)
    assert said.startswith("cuda_fork_guard.errors.UnsafeForkError")
    assert _numbers_out(finished.err).endswith(_numbers_out(said))


def _only_where_scripts_test_runs() -> None:
    if not (ROOT / ".venv" / "installed").is_file() or Path(sys.prefix) != ROOT / ".venv":
        pytest.skip("these tests don't run in the environment that scripts/test makes, and must not change it")


def _pip_install(block: Block, tmp_path: Path) -> None:
    _only_where_scripts_test_runs()
    sources = tmp_path / "checkout"
    shutil.copytree(ROOT, sources, ignore=shutil.ignore_patterns(".*", "build", "__pycache__"))
    there = tmp_path / "there"
    run([sys.executable, "-m", *block.text.split(), "--quiet", "--target", str(there)], limit=300, cwd=sources).ok()
    assert list((there / "cuda_fork_guard").glob("_native*.so"))


def _set_up_command(arguments: str) -> Callable[[Block, Path], None]:
    def check(block: Block, tmp_path: Path) -> None:
        del tmp_path
        _only_where_scripts_test_runs()
        finished = run([*block.text.split(), *arguments.split()], limit=110, cwd=ROOT).ok()
        assert finished.out

    return check


# The start of a command: how it is run here. The tests are not run within the tests: only their names are listed.
COMMANDS: dict[str, Callable[[Block, Path], None]] = {
    "sh scripts/demo": _set_up_command(""),
    "sh scripts/test": _set_up_command("--collect-only -q tests/docs"),
    "pip install": _pip_install,
    "CUDA_FORK_GUARD=": _policy_by_variable,
}


@pytest.mark.timeout(320)
@pytest.mark.parametrize(
    "block", [block for block in BLOCKS if block.language == "sh"], ids=lambda block: f"line-{block.line}"
)
def test_commands_work(block: Block, tmp_path: Path) -> None:
    checks = [check for start, check in COMMANDS.items() if block.text.startswith(start)]
    assert len(checks) == 1, f"README.md:{block.line}: this test doesn't know how to run {block.text!r}"
    checks[0](block, tmp_path)


def test_there_is_no_other_kind_of_block() -> None:
    assert {block.language for block in BLOCKS} == {"python", "sh", "text"}
    outputs = [number for number, block in enumerate(BLOCKS) if block.language == "text"]
    assert all(BLOCKS[number - 1].language != "text" for number in outputs)


def test_two_set_up_commands() -> None:
    assert [block.text for block in BLOCKS if "scripts/" in block.text] == ["sh scripts/demo\n", "sh scripts/test\n"]

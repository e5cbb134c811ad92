"""pytest's entry point: nothing of the guard in a run that does not ask for it, option and fixtures in every one."""

from __future__ import annotations

import sys

import pytest
from support import child

# An editable install's own finder is announced as come too early: the same exception as in this project's settings.
EDITABLE = "ignore:Module already imported so cannot be rewritten. _editable_skbc:pytest.PytestAssertRewriteWarning"
ABSENT = """
import sys

def test_absent():
    loaded = {name.split(".")[0] for name in sys.modules}
    assert "cuda_fork_guard" not in loaded
"""


@pytest.fixture
def run(tmp_path):
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nfilterwarnings =\n    error\n    {EDITABLE}\n")

    def run(test: str, *options: str, value: str | None = None) -> child.Finished:
        (tmp_path / "test_it.py").write_text(test)
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
        return child.run(command, env=child.environment(CUDA_FORK_GUARD=value), cwd=tmp_path)

    return run


@pytest.mark.parametrize("options", [(), ("-n", "1"), ("-p", "no:cuda_fork_guard")], ids=" ".join)
def test_who_does_not_ask_has_nothing_of_it(run, options):
    done = run(ABSENT, *options).ok()
    assert "1 passed" in done.out and "warning" not in done.out


def test_the_variable_beside_warnings_as_errors(run):
    done = run("import sys\ndef test_there(): assert 'cuda_fork_guard' in sys.modules", value="watch").ok()
    assert "1 passed" in done.out and "warning" not in done.out


def test_an_unknown_policy_is_bad_usage(run):
    done = run(ABSENT, "--cuda-fork-guard=watch")
    assert done.code == 4 and "invalid choice: 'watch'" in done.err and "warn" in done.err and "block" in done.err


def test_the_option_is_documented(run):
    assert "--cuda-fork-guard={warn,block}" in run(ABSENT, "--help").ok().out


def test_switched_off_there_is_no_option(run):
    done = run(ABSENT, "-p", "no:cuda_fork_guard", "--cuda-fork-guard=block")
    assert done.code == 4 and "unrecognized arguments" in done.err


def test_the_fixtures_are_there_and_import_nothing(run):
    done = run(ABSENT, "--fixtures").ok()
    for name in ("no_cuda_init", "simulated_cuda"):
        assert f"\n{name} -- " in done.out

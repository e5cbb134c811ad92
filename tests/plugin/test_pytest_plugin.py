"""The pytest plugin, in pytest runs of their own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.child import Finished, environment, run

SAMPLE = """
import ctypes, os
import pytest
from cuda_fork_guard.testing import simulated_cuda

def wait(child):
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

def fork(work=lambda: None):
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    wait(child)

def touch():
    ctypes.CDLL("libcuda.so.1").cuCtxSynchronize()

@pytest.fixture
def up():
    with simulated_cuda():
        yield

def test_clean():
    fork()

def test_forks(up):
    fork()

def test_forks_and_catches(up):
    try:
        fork()
    except RuntimeError:
        pass

def test_allowed(up):
    import cuda_fork_guard
    with cuda_fork_guard.allow_fork("a CPU-only child"):
        fork()

def test_allowed_but_touches(up):
    import cuda_fork_guard
    with cuda_fork_guard.allow_fork("a CPU-only child"):
        fork(touch)

def test_clean_again():
    fork()
"""


# An editable install's own import hook is loaded before pytest is, which pytest warns about: not so from a wheel.
EDITABLE = (
    ("-W", "ignore:Module already imported so cannot be rewritten")
    if "_editable_skbc_cuda_fork_guard" in sys.modules
    else ()
)


def session(folder: Path, *arguments: str, sample: str = SAMPLE) -> Finished:
    (folder / "test_sample.py").write_text(sample, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", *arguments, *EDITABLE, "test_sample.py"]
    return run(command, cwd=folder, env=environment(PYTEST_ADDOPTS=None))


def outcomes(done: Finished) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in done.lines:
        word, _, rest = line.partition(" ")
        if word in ("PASSED", "FAILED", "ERROR") and "::" in rest:
            name = rest.split("::")[1].split(" ")[0].split("[")[0]
            found[name] = word if found.get(name, "PASSED") == "PASSED" else found[name]
    return found


EXPECTED = {
    "test_clean": "PASSED",
    "test_forks": "FAILED",
    "test_forks_and_catches": "FAILED",
    "test_allowed": "PASSED",
    "test_allowed_but_touches": "FAILED",
    "test_clean_again": "PASSED",
}


@pytest.mark.parametrize("policy", ["warn", "block"])
@pytest.mark.parametrize("more", [(), ("-n2",), ("-W", "error"), ("-p", "no:xdist")], ids=" ".join)
def test_a_test_fails_for_its_own_forks_and_touches(policy: str, more: tuple[str, ...], tmp_path: Path) -> None:
    done = session(tmp_path, f"--cuda-fork-guard={policy}", *more)
    assert done.code == 1, done.out + done.err
    assert outcomes(done) == EXPECTED, done.out
    assert "[CFG102] CUDA used in a process that was forked" in done.out
    assert "INTERNALERROR" not in done.out


def test_without_the_option_nothing_of_the_package_is_there(tmp_path: Path) -> None:
    sample = """
    import sys
    def test_nothing():
        assert not [name for name in sys.modules if name.startswith("cuda_fork_guard")]
    """
    assert session(tmp_path, sample="import sys" + sample.replace("\n    ", "\n")).code == 0


def test_a_collection_that_wakes_cuda_fails_the_session_once(tmp_path: Path) -> None:
    (tmp_path / "woken.py").write_text(
        "from cuda_fork_guard.testing import simulated_cuda\n\ndriver = simulated_cuda()\ndriver.__enter__()\n",
        encoding="utf-8",
    )
    sample = "import woken\n\ndef test_one():\n    pass\n\ndef test_two():\n    pass\n"
    for more in ((), ("-n2",)):
        done = session(tmp_path, "--cuda-fork-guard=warn", *more, sample=sample)
        assert done.code == 1, done.out + done.err
        assert outcomes(done) == {"test_one": "PASSED", "test_two": "PASSED"}
        assert done.out.count("[CFG401] collecting the tests woke CUDA") == 1
        assert "woken.py:4 in <module>" in done.out


def test_the_fixtures_work_without_the_option(tmp_path: Path) -> None:
    sample = """
import ctypes
import pytest
import cuda_fork_guard

def test_quiet(no_cuda_init):
    pass

def test_loud(no_cuda_init):
    from cuda_fork_guard.testing import simulated_cuda
    with simulated_cuda():
        pass

@pytest.mark.parametrize("simulated_cuda", [{"devices": 2, "state": "active"}], indirect=True)
def test_up(simulated_cuda):
    assert cuda_fork_guard.status().driver == "active"
"""
    done = session(tmp_path, sample=sample)
    assert outcomes(done) == {"test_quiet": "PASSED", "test_loud": "ERROR", "test_up": "PASSED"}, done.out
    assert "[CFG401] cuInit was called" in done.out and "test_sample.py:11 in test_loud" in done.out


def test_an_unknown_policy_is_a_usage_error(tmp_path: Path) -> None:
    done = session(tmp_path, "--cuda-fork-guard=loud")
    assert done.code == 4 and "invalid choice: 'loud'" in done.err

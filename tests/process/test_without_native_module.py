"""Elsewhere: where no native module is built, the same names import and do nothing harmful."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.child import environment, python, run
from support.elsewhere import PLACES

place = pytest.mark.parametrize("prelude", PLACES.values(), ids=PLACES.keys())


@place
def test_every_public_name_is_there(prelude: str) -> None:
    code = f"""{prelude}
import cuda_fork_guard as guard
missing = [name for name in guard.__all__ if not hasattr(guard, name)]
assert not missing, missing
assert "CUDA_INJECTION64_PATH" not in __import__("os").environ
print(guard.status().supported)
"""
    finished = python(code).ok()
    assert finished.out == "False\n" and finished.err == ""


@place
def test_status_is_unknown_and_says_why(prelude: str) -> None:
    code = f"""{prelude}
import json
import cuda_fork_guard as guard
status = guard.status()
print(json.dumps(status.as_dict())); print(status)
unknown = (status.driver, status.inherited, status.fork_is_safe, status.cuda_is_usable, status.library)
assert unknown == (None,) * 5 and status.reasons and status.active_devices == (), status
assert status.policy == "watch" and status.tripwire == "unavailable"
"""
    python(code).ok()


@place
@pytest.mark.parametrize("policy", ["watch", "warn", "block"])
def test_forks_pass_in_silence(prelude: str, policy: str) -> None:
    code = f"""{prelude}
import os
import cuda_fork_guard as guard
guard.check_fork()
with guard.allow_fork("nothing to allow"):
    if (pid := os.fork()) == 0:
        with guard.allow_fork("here too"):
            os._exit(len(guard.events()))
assert os.waitpid(pid, 0)[1] == 0
events = guard.events()
assert events == () and events.dropped == 0 and set(events.counts.values()) == {{0}}
"""
    finished = python(code, env=environment(CUDA_FORK_GUARD=policy), flags=("-W", "error")).ok()
    assert finished.err == ""


@place
def test_policies_are_kept_and_checked(prelude: str) -> None:
    code = f"""{prelude}
import cuda_fork_guard as guard
told = [guard.status().policy]
with guard.policy("block"):
    told.append(guard.status().policy)
guard.install("warn", origin=True, tripwire=False); told.append(guard.status().policy)
guard.install(); told.append(guard.status().policy)
guard.uninstall(); told.append(guard.status().policy)
guard.install(); told.append(guard.status().policy)
try:
    guard.install("no")
except ValueError:
    print(*told)
"""
    env = environment(CUDA_FORK_GUARD="watch")
    assert python(code, env=env).ok().out == "watch block warn warn off watch\n"


@place
def test_a_bad_variable_is_complained_about_here_too(prelude: str) -> None:
    finished = python(f"{prelude}\nimport cuda_fork_guard", env=environment(CUDA_FORK_GUARD="blok")).ok()
    assert finished.err.count("CudaForkGuardWarning") == 1


@place
def test_workers(prelude: str) -> None:
    code = f"""{prelude}
import pickle
import cuda_fork_guard as guard
released = guard.verify_worker("cpu-only", release_handles=True)
for report in (guard.verify_worker(), guard.verify_worker("cpu-only"), released):
    assert report.inherited is None and report.driver is None and report.reasons, report
    assert report.released_handles == 0 and pickle.loads(pickle.dumps(report)) == report
guard.worker_init_fn(0)
pickle.loads(pickle.dumps(guard.make_worker_init_fn(print)))(3)
try:
    guard.verify_worker("fresh", device=0)
except guard.DriverUnavailableError as error:
    print(error)
for bad in (dict(expect="x"), dict(expect="fresh"), dict(expect="clean", device=0)):
    try:
        guard.verify_worker(**bad)
    except ValueError:
        continue
    raise AssertionError(bad)
"""
    out = python(code).ok().lines
    assert out[0] == "3"
    assert out[1].startswith("[CFG204]") and "the platform is not supported" in out[1]


@place
def test_a_context_is_spawn(prelude: str) -> None:
    code = f"""{prelude}
import cuda_fork_guard as guard
print(guard.get_context().get_start_method())
"""
    assert python(code).ok().out == "spawn\n"


@place
def test_nothing_can_be_proved_of_a_block(prelude: str) -> None:
    code = f"""{prelude}
import cuda_fork_guard as guard
from cuda_fork_guard.no_cuda import NoCudaInit
try:
    with NoCudaInit():
        raise AssertionError("entered")
except guard.CudaForkGuardError as error:
    print(error)
"""
    assert "can't be proved" in python(code).ok().out


@place
@pytest.mark.parametrize(("command", "codes"), [("doctor", {0, 1}), ("doctor --json", {0, 1}), ("demo", {3})])
def test_doctor_works_and_demo_gives_no_verdict(prelude: str, command: str, codes: set[int]) -> None:
    code = f"""{prelude}
import runpy
sys.argv = ["cuda-fork-guard", *{command.split()!r}]
runpy.run_module("cuda_fork_guard", run_name="__main__")
"""
    finished = python(code)
    assert finished.code in codes, finished
    assert "Traceback" not in finished.err and (finished.err if 3 in codes else finished.out), finished


@pytest.mark.parametrize(("name", "command"), [("hidden", "check-import json"), ("darwin", "holders")])
def test_the_other_commands_give_no_verdict(tmp_path: Path, name: str, command: str) -> None:
    """Also in the processes that they start."""
    (tmp_path / "sitecustomize.py").write_text(PLACES[name])
    env = environment(PYTHONPATH=str(tmp_path))
    finished = run([sys.executable, "-m", "cuda_fork_guard", *command.split()], env=env)
    assert finished.code == 3 and finished.err and "Traceback" not in finished.err, finished

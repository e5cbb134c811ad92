"""``UnsafeForkWarning`` goes through ``warnings`` like any other: attribution, filters, and what filters can do."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.child import environment, python, run

WARN = environment(CUDA_FORK_GUARD="warn")

UP = """
import os, sys
import cuda_fork_guard as guard
from cuda_fork_guard.testing import simulated_cuda
simulated = simulated_cuda()
simulated.__enter__()
def fork():
    if (pid := os.fork()) == 0:
        os._exit(0)
    os.waitpid(pid, 0)
"""


def test_it_is_shown_on_the_user_s_line(tmp_path: Path) -> None:
    finished = python(UP + "def main():\n    fork()\nmain()\n", env=WARN, cwd=tmp_path).ok()
    lines = finished.err.splitlines()
    assert lines[0].startswith(f"{tmp_path}/program.py:8: UnsafeForkWarning: [CFG101] fork while CUDA is initialized")
    assert lines[1] == "  forked:  program.py:8 in fork  (os.fork)"
    assert lines[2].startswith("  woken:   ") and lines[3].startswith("  do:      ")
    assert "os.fork()" in lines[4]  # the line of source that warnings adds


def test_a_library_s_fork_is_shown_on_the_line_that_called_it(tmp_path: Path) -> None:
    package = tmp_path / "lib" / "python3.11" / "site-packages" / "forking"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("import os\ndef run():\n    return os.fork()\n")
    program = f"""{UP}
sys.path.insert(0, {str(package.parent)!r})
import forking
if (pid := forking.run()) == 0:
    os._exit(0)
os.waitpid(pid, 0)
"""
    finished = python(program, env=WARN, cwd=tmp_path).ok()
    assert finished.err.startswith(f"{tmp_path}/program.py:14: UnsafeForkWarning")


def test_without_a_line_of_the_user_s_the_innermost_package_s_is_shown(tmp_path: Path) -> None:
    """gunicorn, Celery: the program itself is an installed one."""
    package = tmp_path / "lib" / "python3.11" / "site-packages"
    package.mkdir(parents=True)
    (package / "server.py").write_text(f"{UP}\nimport arbiter\narbiter.spawn_worker(fork)\n")
    (package / "arbiter.py").write_text("def spawn_worker(fork):\n    fork()\n")
    import sys

    finished = run([sys.executable, str(package / "server.py")], env=WARN).ok()
    assert finished.err.startswith(f"{package}/server.py:8: UnsafeForkWarning")


def test_the_standard_library_s_frames_are_passed_over(tmp_path: Path) -> None:
    program = f"""{UP}
import multiprocessing
process = multiprocessing.get_context("fork").Process(target=print)
process.start()
process.join()
"""
    finished = python(program, env=WARN, cwd=tmp_path).ok()
    assert finished.err.startswith(f"{tmp_path}/program.py:14: UnsafeForkWarning")
    assert "program.py:14 in <module>  (multiprocessing)" in finished.err


def test_once_a_line_by_default_and_always_if_told() -> None:
    code = f"""{UP}
def other():
    fork()
for _ in range(5):
    fork()
if (pid := os.fork()) == 0:
    os._exit(0)
os.waitpid(pid, 0)
"""
    assert python(code, env=WARN).ok().err.count("UnsafeForkWarning") == 2
    assert python(code, env=WARN, flags=("-W", "always")).ok().err.count("UnsafeForkWarning") == 6
    assert python(code, env=WARN, flags=("-W", "once")).ok().err.count("UnsafeForkWarning") == 2


def test_the_text_is_the_same_for_the_same_site_and_origin() -> None:
    code = f"""{UP}
import warnings
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    for _ in range(3):
        fork()
texts = {{str(warning.message) for warning in seen}}
assert len(seen) == 3 and len(texts) == 1, texts
assert str(os.getpid()) not in texts.pop().split("woken:")[0]
"""
    python(code, env=WARN).ok()


@pytest.mark.parametrize(
    ("flag", "shown"),
    [
        ("ignore:[CFG101]", 0),
        ("ignore:[cfg101] fork", 0),
        ("ignore:CFG101", 1),
        ("ignore::RuntimeWarning", 0),
        ("ignore::RuntimeWarning:__main__", 0),
        ("ignore::RuntimeWarning:os", 1),
        ("ignore::UserWarning", 1),
    ],
)
def test_filters_of_the_command_line(flag: str, shown: int) -> None:
    assert python(f"{UP}\nfork()", env=WARN, flags=("-W", flag)).ok().err.count("UnsafeForkWarning") == shown


def test_filters_of_the_variable_and_by_module(tmp_path: Path) -> None:
    env = environment(CUDA_FORK_GUARD="warn", PYTHONWARNINGS="ignore:[CFG101]")
    assert python(f"{UP}\nfork()", env=env).ok().err == ""
    (tmp_path / "noisy.py").write_text(UP)
    program = """
import warnings
warnings.filterwarnings("ignore", module="noisy")
import noisy
noisy.fork()
print("done")
"""
    finished = python(program, env=WARN, cwd=tmp_path).ok()
    assert finished.out == "done\n" and finished.err == ""


@pytest.mark.parametrize("flag", ["error", "error::RuntimeWarning", "error:[CFG101]"])
def test_error_refuses_the_fork(flag: str) -> None:
    code = f"""{UP}
try:
    os.fork()
except guard.UnsafeForkWarning as warning:
    print(str(warning).splitlines()[0])
try:
    os.wait()
except ChildProcessError:
    print(guard.events().counts["fork"])
"""
    out = python(code, env=WARN, flags=("-W", flag)).ok().lines
    assert out[0].startswith("[CFG101] fork while") and out[1] == "0"


def test_a_showwarning_that_raises_refuses_the_fork() -> None:
    code = f"""{UP}
import warnings
def show(*args, **kwargs):
    raise LookupError("from showwarning")
warnings.showwarning = show
for _ in range(2):
    try:
        fork()
    except LookupError as error:
        print(error)
warnings.simplefilter("ignore")
fork()
print(guard.events().counts["fork"], [reason for reason in guard.status().reasons if reason.startswith("guard:")])
"""
    # warnings counts it as shown before it shows it, so the second fork from this line passes.
    assert python(code, env=WARN).ok().lines == ["from showwarning", "2 []"]


def test_a_showwarning_that_forks_does_not_recurse() -> None:
    code = f"""{UP}
import warnings
calls = []
def show(*args, **kwargs):
    calls.append(1)
    fork()
warnings.showwarning = show
warnings.simplefilter("always")
fork()
print(len(calls), guard.events().counts["fork"], *[event.text for event in guard.events() if event.kind == "fork"], sep="|")
"""
    calls, count, inner, outer = python(code, env=WARN).ok().out.strip().split("|")
    assert (calls, count) == ("1", "2")
    assert "while another fork was being decided on" in inner and "<string>:8 in fork" in outer


def test_a_logging_showwarning_works() -> None:
    code = f"""{UP}
import logging
logging.basicConfig(format="%(name)s %(levelname)s %(message)s")
logging.captureWarnings(True)
fork()
"""
    finished = python(code, env=WARN).ok()
    assert finished.err.startswith("py.warnings WARNING <string>:8: UnsafeForkWarning: [CFG101]")


def test_an_interrupt_in_showwarning_is_an_interrupt() -> None:
    code = f"""{UP}
import warnings
def show(*args, **kwargs):
    raise KeyboardInterrupt
warnings.showwarning = show
try:
    fork()
except KeyboardInterrupt:
    print(guard.events().counts["fork"])
"""
    assert python(code, env=WARN).ok().out == "0\n"


def test_inherited_processes_are_warned_in_their_own_words() -> None:
    code = f"""{UP}
import warnings
warnings.simplefilter("ignore")
if (pid := os.fork()) == 0:
    warnings.simplefilter("always")
    fork()
    os._exit(0)
os.waitpid(pid, 0)
"""
    err = python(code, env=WARN).ok().err
    assert "[CFG101] fork in a process with inherited CUDA" in err and err.count("UnsafeForkWarning") == 1

"""CUDA used in a forked child: one report, recorded, and the child goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.child import Finished, python

PARENT = """
import ctypes, os, signal, sys, threading
import cuda_fork_guard as guard
from cuda_fork_guard.testing import simulated_cuda

def touch():
    count = ctypes.c_int()
    return ctypes.CDLL("libcuda.so.1").cuDeviceGetCount(ctypes.byref(count))

def wait(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def forked(work):
    child = os.fork()
    if child == 0:
        work()
        sys.stdout.flush()
        os._exit(7)
    return wait(child)

with simulated_cuda():
    BODY
"""


def program(body: str, folder: Path, limit: float = 60) -> Finished:
    return python(PARENT.replace("BODY", body.strip().replace("\n", "\n    ")), cwd=folder, limit=limit)


def reports(text: str) -> list[list[str]]:
    """The reports on stderr, as lines; anything else there is a failure."""
    found: list[list[str]] = []
    for line in text.splitlines():
        if line.startswith("cuda_fork_guard["):
            found.append([line])
        else:
            assert line.startswith("  "), f"unexpected on stderr: {line!r}"
            found[-1].append(line)
    return found


def test_a_touch_is_reported_once_with_its_three_lines(tmp_path: Path) -> None:
    # GIVEN a child of a process whose driver is up
    # WHEN it calls the driver, three times and from two functions
    done = program(
        "assert forked(lambda: [touch() for _ in range(3)]) == 7; print(guard.events().counts)", tmp_path
    ).ok()
    # THEN one report names where it was used, forked and woken, and what to do
    (report,) = reports(done.err)
    assert "[CFG102] CUDA used in a process that was forked after CUDA was initialized" in report[0]
    assert [line[:11] for line in report[1:]] == ["  used:    ", "  forked:  ", "  woken:   ", "  do:      "]
    assert "program.py:8 in touch" in report[1] and "(cuDeviceGetCount)" in report[1]
    assert "program.py:14 in forked" in report[2] and "(os.fork, from pid" in report[2]
    assert "program.py:21 in <module>" in report[3] and "cuInit" in report[3]
    assert "'touch': 1" in done.out and "'fork': 1" in done.out


def test_the_touch_gets_the_drivers_own_answer(tmp_path: Path) -> None:
    done = program("forked(lambda: print(touch(), guard.status().tripwire))", tmp_path).ok()
    assert done.lines == ["3 tripped"]


def test_a_child_that_leaves_cuda_alone_is_silent(tmp_path: Path) -> None:
    done = program("assert forked(lambda: print(guard.status().tripwire)) == 7", tmp_path).ok()
    assert done.out == "armed\n" and done.err == ""


def test_the_parent_has_the_record_even_if_the_child_dies_at_once(tmp_path: Path) -> None:
    body = """
def touch_and_die():
    touch()
    os.kill(os.getpid(), signal.SIGKILL)
assert forked(touch_and_die) == -signal.SIGKILL
touched = [event for event in guard.events() if event.kind == "touch"]
print(len(touched), "used:" in str(touched[0]))
"""
    done = program(body, tmp_path).ok()
    assert done.lines == ["1 True"] and len(reports(done.err)) == 1


def test_a_native_fork_is_armed_like_any_other(tmp_path: Path) -> None:
    body = """
child = ctypes.PyDLL(None).fork()
if child == 0:
    touch()
    os._exit(0)
assert wait(child) == 0
"""
    (report,) = reports(program(body, tmp_path).ok().err)
    assert "program.py:8 in touch" in report[1]
    assert "unknown: a native fork()" in report[2] and "(a C library, from pid" in report[2]
    assert "program.py:21 in <module>" in report[3]


def test_a_grandchild_reports_for_itself(tmp_path: Path) -> None:
    body = """
def child():
    touch()
    assert forked(touch) == 7
assert forked(child) == 7
print(guard.events().counts["touch"])
"""
    done = program(body, tmp_path).ok()
    assert len(reports(done.err)) == 2 and done.out == "2\n"


def test_a_grandchild_of_an_untouched_child(tmp_path: Path) -> None:
    body = """
assert forked(lambda: forked(touch)) == 7
print(guard.events().counts)
"""
    done = program(body, tmp_path).ok()
    (report,) = reports(done.err)
    assert "program.py:14 in forked" in report[2] and "'touch': 1" in done.out and "'fork': 2" in done.out


@pytest.mark.parametrize("policy", ["watch", "warn", "block", "off"])
def test_under_each_policy(policy: str, tmp_path: Path) -> None:
    body = f"""
with guard.policy({policy!r}), guard.allow_fork("a test"):
    assert forked(touch) == 7
"""
    done = program(body, tmp_path).ok()
    assert len(reports(done.err)) == (0 if policy == "off" else 1)


def test_threads_that_touch_together_give_one_report(tmp_path: Path) -> None:
    body = """
def together():
    barrier = threading.Barrier(4)
    def work():
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        barrier.wait()
        answers.append(touch())
    answers = []
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert answers == [3] * 4, answers
for _ in range(20):
    assert forked(together) == 7
print(guard.events().counts["touch"])
"""
    done = program(body, tmp_path).ok()
    assert len(reports(done.err)) == 20 and done.out == "20\n"


def test_no_report_goes_into_a_file_that_got_descriptor_2(tmp_path: Path) -> None:
    body = """
kept = os.dup(2)
os.close(2)
def child():
    assert os.open("data.txt", os.O_CREAT | os.O_WRONLY) == 2
    touch()
code = forked(child)
os.dup2(kept, 2)
assert code == 7
print(guard.events().counts["touch"])
"""
    done = program(body, tmp_path).ok()
    assert (tmp_path / "data.txt").read_bytes() == b"" and done.err == "" and done.out == "1\n"


def test_a_touch_while_the_process_ends_is_recorded_and_not_reported(tmp_path: Path) -> None:
    body = """
import atexit
child = os.fork()
if child == 0:
    atexit.register(touch)
    sys.exit(0)
assert wait(child) == 0
print(guard.events().counts["end"], guard.events().counts["touch"])
"""
    done = program(body, tmp_path).ok()
    assert done.out.splitlines()[-1] == "1 0" and done.err == ""


def test_the_garbage_collector_is_named(tmp_path: Path) -> None:
    body = """
import gc
class Buffer:
    def __init__(self): self.me = self
    def __del__(self): touch()
gc.disable()  # or the parent's own collector may come first
Buffer()
def child():
    gc.collect()
assert forked(child) == 7
"""
    (report,) = reports(program(body, tmp_path).ok().err)
    assert "in touch" in report[1] and "during garbage collection" in report[1]


def test_cpu_only_in_a_process_that_never_had_cuda(tmp_path: Path) -> None:
    code = """
    import ctypes, sys
    import cuda_fork_guard as guard
    from cuda_fork_guard.testing import simulated_cuda
    with simulated_cuda(state="loaded"):
        report = guard.verify_worker("cpu-only")
        print(report.tripwire)
        ctypes.CDLL("libcuda.so.1").cuInit(0)
        print(guard.events().counts["touch"])
    """
    done = python(code, cwd=tmp_path).ok()
    assert done.out == "armed\n1\n"
    assert "CUDA used in a process that was verified as cpu-only" in done.err and "program.py:8 in <module>" in done.err


def test_exec_vfork_and_spawn_from_an_armed_child(tmp_path: Path) -> None:
    body = """
import subprocess
def child():
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    subprocess.run(["true"], check=True, preexec_fn=lambda: None)
    os.waitpid(os.posix_spawn("/bin/true", ["true"], os.environ), 0)
    os.system("true")
    os.execv("/bin/true", ["true"])
assert forked(child) == 0
"""
    assert program(body, tmp_path).ok().err == ""

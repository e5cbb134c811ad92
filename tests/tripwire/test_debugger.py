"""Under gdb, and with gdb coming later."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from support.child import Finished, environment, run
from support.tripwire import Programs

pytestmark = pytest.mark.skipif(shutil.which("gdb") is None, reason="no gdb")


def gdb(*commands: str, more: tuple[str, ...] = ()) -> Finished:
    settings = ("set pagination off", "set breakpoint pending on", "set debuginfod enabled off")
    return run(["gdb", "-q", "-nx", "-batch", *(f"-ex={one}" for one in (*settings, *commands)), *more], limit=90)


def under_gdb(programs: Programs, library: Path, scenario: str, *commands: str) -> Finished:
    return gdb(*commands, more=("--args", str(programs.probe), str(library), scenario))


def test_breakpoint_on_entry(programs: Programs, library: Path) -> None:
    finished = under_gdb(
        programs, library, "beside_breakpoint",
        "break cuDeviceGetCount", "run", "bt 1", "continue", "bt 1", "continue", "bt 1", "continue",
    )  # fmt: skip
    assert finished.out.count("cuDeviceGetCount ()") + finished.out.count("cuDeviceGetCount (") >= 3
    assert "ok\n" in finished.out
    assert "exited normally" in finished.out, finished.out + finished.err


def test_stack_from_inside_handler(programs: Programs, library: Path) -> None:
    finished = under_gdb(
        programs, library, "backtrace", "set follow-fork-mode child", "break in_handler", "run", "bt", "continue"
    )
    frames = [line for line in finished.lines if line.startswith("#")]
    order = ["in_handler", "cfg_tripwire_hit", "cfg_tripwire_common", "first_caller", "second_caller", "main"]
    found = [next(i for i, line in enumerate(frames) if f"{name} (" in line) for name in order]
    assert found == sorted(found), finished.out
    assert "corrupt stack" not in finished.out + finished.err
    assert "exited normally" in finished.out, finished.out + finished.err


def test_attached_to_armed_child(programs: Programs, library: Path) -> None:
    process = subprocess.Popen(
        [str(programs.probe), str(library), "waits_armed"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip
    try:
        assert process.stdout is not None
        word, pid = process.stdout.readline().split()
        assert word == "ready"
        attached = gdb("info symbol cuDeviceGetCount", "bt", "detach", more=("-p", pid))
        if "ptrace: Operation not permitted" in attached.err:
            pytest.skip("this system lets nobody attach")
        assert "main (" in attached.out, attached.out + attached.err
        out, err = process.communicate("\n", timeout=30)
        assert (process.returncode, out, err) == (0, "ok\n", "")
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()

"""`holders` on a /proc made of files, for what no test can bring about in the real one: a process whose files block
when they are read, and a machine on which everything can be seen."""

from __future__ import annotations

import argparse
import json
import os
import time

import pytest

from cuda_fork_guard.cli import holders
from cuda_fork_guard.cli.process_scan import scan

STAT = b"%d (python) S 1 0 0 0 0 64 0 0 0 0 0 0 0 0 20 0 1 0 100 0 0 0 7 8 9" + b" 0" * 22 + b"\n"


@pytest.fixture
def proc(tmp_path):
    for pid in (1, 7):
        add(tmp_path, pid)
    (tmp_path / "self").symlink_to("7")
    return tmp_path


def add(proc, pid: int, *links: str):
    folder = proc / str(pid)
    thread = folder / "task" / str(pid)
    for path in (folder, thread):
        for name in ("fd", "ns"):
            (path / name).mkdir(parents=True)
        (path / "ns" / "pid").symlink_to("pid:[4026531836]")
        (path / "stat").write_bytes(STAT % pid)
        (path / "maps").write_bytes(b"7f00-7f01 r-xp 00000000 08:01 7 /usr/lib/libc.so.6\n")
        (path / "status").write_bytes(b"Uid:\t0\t0\t0\t0\n")
        (path / "cmdline").write_bytes(b"python\0train.py\0")
        for number, link in enumerate(links):
            (path / "fd" / str(number)).symlink_to(link)
    return folder


def run(proc, capsys) -> tuple[int, dict]:
    code = holders.run(argparse.Namespace(json=True), str(proc))
    return code, json.loads(capsys.readouterr().out)


def test_everything_seen_and_nothing_found(proc, capsys):
    code, answer = run(proc, capsys)
    assert code == 0 and answer["complete"] is True and answer["holders"] == [] and answer["reasons"] == []


def test_found(proc, capsys):
    add(proc, 12, "/dev/null", "/dev/nvidia0 (deleted)")
    code, answer = run(proc, capsys)
    assert code == 1 and answer["complete"] is True
    assert [(row["pid"], row["handles"]) for row in answer["holders"]] == [(12, [{"path": "/dev/nvidia0", "count": 1}])]


def test_a_kernel_that_can_only_print_mappings(proc, capsys):
    """Files take no ioctl, as older kernels' don't."""
    (add(proc, 12) / "task/12/maps").write_bytes(b"0-1 rw-s 0 0:6 5 /dev/nvidia-uvm\n")
    (proc / "12/maps").write_bytes(b"0-1 rw-s 0 0:6 5                 /dev/nvidia-uvm (deleted)\n")
    code, answer = run(proc, capsys)
    assert code == 1 and answer["holders"][0]["mapped_only"] is True


@pytest.mark.parametrize("links", [(), ("/dev/nvidia0",)], ids=["mappings", "command line"])
def test_a_process_that_hangs_in_the_kernel_is_given_up(proc, links):
    """Reading a FIFO nobody writes blocks as reading such a process's files does."""
    for pid in (11, 12, 13, 14, 15):
        add(proc, pid, *links)
    for pid in (12, 14):
        for name in ("maps", "cmdline"):
            for folder in (proc / f"{pid}", proc / f"{pid}/task/{pid}"):
                (folder / name).unlink()
                os.mkfifo(folder / name)
    before = time.monotonic()
    seen = scan(str(proc), stuck_after=0.2)
    assert time.monotonic() - before < 5
    assert sorted(process.pid for process in seen.unreadable) == [12, 14]
    assert all("hangs in the kernel" in process.reason for process in seen.unreadable)
    assert [process.pid for process in seen.processes] == ([11, 13, 15] if links else [])
    # Let the given-up threads go.
    for pid in (12, 14):
        for name in (f"{pid}/maps", f"{pid}/task/{pid}/cmdline"):
            try:
                os.close(os.open(proc / name, os.O_WRONLY | os.O_NONBLOCK))
            except OSError:
                continue


def test_not_there(tmp_path, capsys):
    code = holders.run(argparse.Namespace(json=True), str(tmp_path / "nowhere"))
    said = capsys.readouterr()
    assert code == 3 and "can't be read" in said.err and json.loads(said.out)["complete"] is False

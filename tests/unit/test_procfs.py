"""Parsers of /proc against this kernel's own files and against hostile ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cuda_fork_guard import procfs


def stat_line(comm: bytes, fields: int = 50) -> bytes:
    """Field N holds N*100, as proc(5) counts them."""
    rest = b" ".join(str(number * 100).encode() for number in range(4, fields + 1))
    return b"4242 (" + comm + b") S " + rest + b"\n"


def test_each_field_is_where_proc_5_says():
    stat = procfs.parse_stat(stat_line(b"python"))
    assert (stat.comm, stat.state, stat.ppid, stat.flags, stat.threads) == ("python", "S", 400, 900, 2000)
    assert stat.start_ticks == 2200 and stat.image == (2600, 2800, 4800, 5000)


def test_this_process():
    stat = procfs.parse_stat(Path("/proc/self/stat").read_bytes())
    assert stat.ppid == os.getppid() and stat.state == "R" and all(stat.image)
    assert not stat.is_kernel_thread
    assert procfs.parse_stat(Path("/proc/2/stat").read_bytes()).is_kernel_thread
    status = procfs.parse_status(Path("/proc/self/status").read_bytes())
    assert status == (os.geteuid(), status.pids) and status.pids[-1] == os.getpid()
    argv = procfs.parse_cmdline(Path("/proc/self/cmdline").read_bytes())
    assert argv[0].endswith(Path(os.sys.executable).name) or "python" in argv[0]


@pytest.mark.parametrize("comm", [b")", b"(", b") R 1 (", b"a) Z 0 0 (b", b"", b"\n) S\n", b" ", b"\xff\xfe)"])
def test_no_command_name_confuses_it(comm):
    stat = procfs.parse_stat(stat_line(comm))
    assert stat.ppid == 400 and stat.image == (2600, 2800, 4800, 5000) and stat.comm.isprintable()
    assert procfs.flags_of(stat_line(comm)) == 900


def test_an_old_kernel_has_fewer_fields():
    assert procfs.parse_stat(stat_line(b"x", fields=44)).image == (2600, 2800, 0, 0)


def test_one_stands_for_hidden():
    line = stat_line(b"x").replace(b" 2600 ", b" 1 ").replace(b" 2800 ", b" 0 ")
    assert procfs.parse_stat(line).image[:2] == (0, 0)


NO_LINES = [b"", b"4242", b"4242 (x", b"x) S 1 2", b"4242 (x) S 1 2 3", stat_line(b"x", 10), b"()" * 99]


@pytest.mark.parametrize("data", NO_LINES)
def test_what_is_no_stat_line(data):
    with pytest.raises(ValueError):
        procfs.parse_stat(data)


@pytest.mark.parametrize("data", [b"", b"4242 (x", b"4242 (x) S 1 2 3"])
def test_no_flags(data):
    with pytest.raises(ValueError):
        procfs.flags_of(data)


@pytest.mark.parametrize("length", range(0, 300, 7))
def test_a_line_cut_anywhere_is_refused_or_right(length):
    line = stat_line(b"a) (b")[:length]
    try:
        stat = procfs.parse_stat(line)
    except ValueError:
        return
    assert stat.ppid == 400 and stat.flags == 900


@pytest.mark.parametrize(
    ("data", "uid", "pids"),
    [
        (b"Name:\tx\nUid:\t0\t1000\t0\t0\nNSpid:\t4242\t7\t1\n", 1000, (4242, 7, 1)),
        (b"", None, ()),
        (b"Uid:\t\nNSpid:\tx\n", None, ()),
        (b"Uid:\t5\n", None, ()),
        (b"Name:\tUid:\\n\nUid:\t1\t2\t3\t4", 2, ()),
    ],
)
def test_status(data, uid, pids):
    assert procfs.parse_status(data) == (uid, pids)


@pytest.mark.parametrize(
    ("data", "argv"),
    [
        (b"", ()),
        (b"\0\0", ()),
        (b"python\0-c\0x = 1\0", ("python", "-c", "x = 1")),
        (b"python\0\0x\0", ("python", "", "x")),
        (b"gunicorn: master [app]", ("gunicorn: master [app]",)),
        (b"\xff\x1b[2J\r\n\xc3\xa9\0", ("\\xff\\x1b[2J\\r\\né",)),
        ("\u202egpj.exe\0".encode(), ("\\u202egpj.exe",)),
    ],
)
def test_cmdline(data, argv):
    assert procfs.parse_cmdline(data) == argv


def test_a_long_cmdline_is_cut_and_says_so():
    (word,) = procfs.parse_cmdline(b"x" * procfs.CMDLINE_LIMIT)
    assert len(word) == procfs.CMDLINE_LIMIT and word.endswith("...")


@pytest.mark.parametrize(
    ("data", "path"),
    [
        (b"0::/user.slice/a\n", "/user.slice/a"),
        (b"12:cpu,cpuacct:/a\n1:name=systemd:/b\n0::/c\n", "/c"),
        (b"12:cpu,cpuacct:/a\n11:memory:/b\n", "/a"),
        (b"0::/with:colon\n", "/with:colon"),
        (b"", None),
        (b"nonsense\n", None),
    ],
)
def test_cgroup(data, path):
    assert procfs.parse_cgroup(data) == path


DIGITS = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("cgroup", "container"),
    [
        (f"/system.slice/docker-{DIGITS}.scope", DIGITS[:12]),
        (f"/docker/{DIGITS}", DIGITS[:12]),
        (f"/kubepods.slice/kubepods-besteffort.slice/cri-containerd-{DIGITS}.scope", DIGITS[:12]),
        (f"/kubepods/besteffort/pod1/{DIGITS}", DIGITS[:12]),
        (f"/system.slice/kubepods.slice:cri-containerd:{DIGITS}", DIGITS[:12]),
        (f"/machine.slice/libpod-{DIGITS}.scope/container", DIGITS[:12]),
        ("/user.slice/user-1000.slice/session-2.scope", None),
        ("/", None),
        (None, None),
    ],
)
def test_container(cgroup, container):
    assert procfs.container_of(cgroup) == container

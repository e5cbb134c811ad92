"""`holders` against real processes with real character devices, each in a /dev of its own: whose handles they are."""

from __future__ import annotations

import private_dev
import pytest

reason = private_dev.why_not()
pytestmark = pytest.mark.skipif(reason is not None, reason=str(reason))


def test_own_handles(play):
    play("""
        hold(CTL, GPU, GPU, UVM)
        row = rows()[os.getpid()]
        assert row["owner"] == "own" and row["orphaned"] is False and row["reaper"] is None
        assert row["handles"] == [{"path": UVM, "count": 1}, {"path": GPU, "count": 2}, {"path": CTL, "count": 1}]
        assert row["cuda"] is True and not row["mapped_only"]
        assert row["ppid"] == os.getppid() and row["uid"] == os.getuid()
        assert row["command"] == [sys.executable, sys.argv[0]]
        assert 0 <= row["age_seconds"] < 60
        assert row["memory_bytes"] is None
    """)


def test_monitoring_is_not_taken_for_cuda(play):
    """NVML opens the control node and the GPUs, never the memory manager."""
    play("""
        hold(CTL, GPU)
        assert rows()[os.getpid()]["cuda"] is None
    """)


def test_a_forked_child_inherits(play):
    play("""
        hold(GPU, UVM)
        child = fork()
        seen = rows()
        assert seen[os.getpid()]["owner"] == "own"
        assert seen[child]["owner"] == "inherited" and seen[child]["orphaned"] is False
        assert "same open files" in seen[child]["evidence"]
    """)


def test_a_child_with_handles_of_its_own(play):
    """Forked without exec like the other, and even under the same descriptor numbers: only the open file differs."""
    play("""
        mine = hold(GPU, UVM)

        def anew():
            for fd in mine:
                os.close(fd)
            assert hold(GPU, UVM) == mine

        child = fork(anew)
        assert rows()[child]["owner"] == "own"
    """)


def test_a_child_forked_before_cuda(play):
    play("""
        child = fork(lambda: hold(GPU))
        seen = rows()
        assert os.getpid() not in seen and seen[child]["owner"] == "own"
    """)


def test_exec_makes_it_its_own(play):
    play("""
        fds = hold(GPU)
        process = subprocess.Popen(["sleep", "60"], pass_fds=fds)
        started(process.pid)
        row = rows()[process.pid]
        assert row["owner"] == "own" and not row["forked_without_exec"] and row["command"] == ["sleep", "60"]
    """)


def test_an_orphaned_worker(play):
    """Case 10: who forked it is gone, and it still holds what it never opened."""
    play("""
        hold(GPU, UVM)
        pid = orphan()
        answer = report()
        row = {row["pid"]: row for row in answer["holders"]}[pid]
        assert row["owner"] == "inherited" and row["orphaned"] is True
        with open(f"/proc/{row['ppid']}/comm") as file:
            assert row["reaper"] == {"pid": row["ppid"], "comm": file.read().strip()}
        assert answer["kill"].split()[0] == "kill" and str(pid) in answer["kill"].split()
        text = holders(code=1)
        assert "kill " in text.stdout and "orphaned, adopted by" in text.stdout
        os.kill(pid, 0)  # it only says so
    """)


def test_a_subreaper_is_named(play):
    play("""
        # The subreaper is another program: it starts this one as its child, which forks a middle one that ends.
        hold(GPU)
        if "inner" not in sys.argv:
            program = (
                "import ctypes, subprocess, sys\\n"
                "assert ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0\\n"
                "sys.exit(subprocess.run([sys.executable, sys.argv[1], 'inner']).returncode)\\n"
            )
            done = subprocess.run([sys.executable, "-c", program, sys.argv[0]], capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr
        else:
            pid = orphan()
            row = rows()[pid]
            assert row["orphaned"] is True and row["reaper"]["pid"] == os.getppid(), row
    """)


def test_a_mapping_outlives_its_descriptor(play):
    """A worker whose inherited descriptors were closed, its mappings forgotten: it still keeps the device.

    No device to be mapped can be had without a driver: a file in its place serves, mappings look the same.
    """
    play("""
        os.unlink(GPU)
        fd = os.open(GPU, os.O_RDWR | os.O_CREAT)
        os.ftruncate(fd, 4096)
        memory = mmap.mmap(fd, 4096)
        hold(UVM)

        def close():
            for fd in range(3, 20):
                with contextlib.suppress(OSError):
                    if os.readlink(f"/proc/self/fd/{fd}").startswith("/dev/nv"):
                        os.close(fd)

        child, lost = fork(close), orphan(close)
        freed = fork(lambda: (close(), memory.close()))
        seen = rows()
        assert freed not in seen
        for pid in (child, lost):
            assert seen[pid]["mapped_only"] is True and seen[pid]["handles"] == [{"path": GPU, "count": 1}]
            assert seen[pid]["owner"] == "inherited" and seen[pid]["orphaned"] is (pid == lost)
        assert "mapped, descriptor closed" in holders(code=1).stdout
    """)


def test_a_file_of_that_name_is_no_device(play):
    play("""
        os.unlink(GPU)
        fd = os.open(GPU, os.O_RDWR | os.O_CREAT)
        assert os.getpid() not in rows()
    """)


def test_a_node_deleted_while_open(play):
    play("""
        hold(GPU)
        os.unlink(GPU)
        assert rows()[os.getpid()]["handles"] == [{"path": GPU, "count": 1}]
    """)


def test_released_handles_are_not_shown(play):
    """What `verify_worker("cpu-only", release_handles=True)` does: /dev/null in their place."""
    play("""
        fds = hold(GPU, UVM, "/dev/nvidia-caps/nvidia-cap1")
        def release():
            null = os.open("/dev/null", os.O_RDWR)
            for fd in fds:
                os.dup2(null, fd)
        kept, released = orphan(), orphan(release)
        seen = rows()
        assert kept in seen and released not in seen
    """)

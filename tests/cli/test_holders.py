"""`holders` against real processes with real character devices, each in a /dev of its own."""

from __future__ import annotations

import textwrap

import private_dev
import pytest

reason = private_dev.why_not()
pytestmark = pytest.mark.skipif(reason is not None, reason=str(reason))


@pytest.fixture
def play(tmp_path):
    def play(body: str, *, unshare: tuple[str, ...] = ()) -> None:
        program = tmp_path / "program.py"
        head = "import contextlib, json, mmap, os, re, signal, subprocess, sys, threading\nfrom stage import *\n"
        program.write_text(f"{head}with stage():\n{textwrap.indent(textwrap.dedent(body), '    ')}")
        done = private_dev.run(program, unshare=unshare)
        assert done.ok().out.endswith("played\n")

    return play


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
        assert answer["kill"] == f"kill {pid}"
        text = holders(code=1)
        assert f"kill {pid}" in text.stdout and "orphaned, adopted by" in text.stdout
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


def test_process_one_may_be_the_program_itself(play):
    """In a container: its children have process 1 for a parent, and are nobody's orphans."""
    play(
        """
        assert os.getpid() == 1
        hold(GPU)
        child, lost = fork(), orphan()
        answer = report()
        seen = {row["pid"]: row for row in answer["holders"]}
        assert seen[child]["ppid"] == 1 and seen[child]["orphaned"] is False
        assert seen[child]["owner"] == "inherited"
        assert any("PID namespace" in reason for reason in answer["reasons"])
        assert answer["pids_are_the_machines"] is False
        """,
        unshare=("--pid", "--fork", "--mount-proc"),
    )


def test_another_pid_namespace_is_seen_from_outside(play):
    play("""
        hold(GPU)
        inside = "import os, time; fd = os.open('/dev/nvidia0', os.O_RDWR); print('up', flush=True); input()"
        process = subprocess.Popen(
            ["unshare", "--pid", "--fork", "--kill-child", sys.executable, "-c", inside],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started(process.pid)
        assert process.stdout.readline() == "up\\n"
        others = [row for row in rows().values() if row["other_pid_namespace"]]
        assert len(others) == 1 and others[0]["pid_in_namespace"] == 1 and others[0]["pid"] != 1
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


def test_a_main_thread_that_has_ended(play):
    """The descriptors are still open, but the process's own table reads as empty."""
    play("""
        import ctypes
        hold(GPU)
        def last_thread_standing():
            threading.Thread(target=lambda: (os.write(tell, b"up"), signal.pause())).start()
            ctypes.CDLL(None).pthread_exit(None)
        ready, tell = os.pipe()
        pid = os.fork()
        if pid == 0:
            last_thread_standing()
        started(pid)
        assert os.read(ready, 2) == b"up"
        while open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] != "Z":
            pass
        assert rows()[pid]["owner"] == "inherited"
    """)


def test_uninterruptible_sleep(play):
    """A process in vfork waits for its child in that very state."""
    play("""
        hold(GPU)
        body = '''
#include <fcntl.h>
#include <unistd.h>
int main(void) {
    if (open("/dev/nvidia0", O_RDWR | O_CLOEXEC) < 0) return 1;
    if (vfork() == 0) { write(1, "up", 2); pause(); _exit(0); }
    return 0;
}
'''
        source = sys.argv[0] + ".c"
        with open(source, "w") as file:
            file.write(body)
        subprocess.run(["cc", "-w", "-o", source + ".out", source], check=True, timeout=30)
        process = subprocess.Popen([source + ".out"], stdout=subprocess.PIPE, start_new_session=True)
        try:
            assert process.stdout.read(2) == b"up"
            row = rows()[process.pid]
            assert row["state"] == "D" and row["uninterruptible_sleep"] is True
            assert "in uninterruptible sleep" in holders(code=1).stdout
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    """)


def test_hostile_names(play):
    play(r"""
        import ctypes
        def rename():
            ctypes.CDLL(None).prctl(15, b") R 1 (\n\x1b[2J\xff", 0, 0, 0)
        def body():
            rename()
            hold(GPU)
        child = fork(body)
        process = subprocess.Popen(
            [b"a\x1b[31m\nb) \xff", "-c", "import os; os.open('/dev/nvidia0', 2); print('up', flush=True); input()"],
            executable=sys.executable, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started(process.pid)
        assert process.stdout.readline() == b"up\n"
        seen = rows()
        assert seen[child]["ppid"] == os.getpid() and seen[child]["owner"] == "own"
        assert seen[process.pid]["command"][0] == "a\\x1b[31m\\nb) \\xff"
        done = holders(code=1)
        assert "\x1b" not in done.stdout and str(process.pid) in done.stdout
        assert len([line for line in done.stdout.splitlines() if line.lstrip()[:1].isdigit()]) == len(seen)
    """)


def test_processes_that_come_and_go(play):
    """Looked at while thousands end: no error, no stranger."""
    play("""
        hold(GPU)
        churn = subprocess.Popen(
            ["sh", "-c", "while :; do /bin/true & /bin/true; wait; done"], start_new_session=True)
        try:
            for _ in range(15):
                done = holders("--json", code=1)
                mine = json.loads(done.stdout)["holders"]
                assert os.getpid() in [row["pid"] for row in mine]
                assert all("true" not in row["command"][0] for row in mine)
        finally:
            os.killpg(churn.pid, signal.SIGKILL)
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


# What an ordinary user lacks is the capability to look into others' processes; a root without capabilities is refused
# just the same, and can still read its own interpreter wherever that is installed.
UNPRIVILEGED = ("setpriv", "--bounding-set=-all")


def test_what_is_not_permitted_is_said(play):
    play(f"""
        hold(GPU)
        done = holders("--json", prefix={UNPRIVILEGED}, code=3)
        answer = json.loads(done.stdout)
        assert answer["holders"] == [] and answer["complete"] is False
        (reason,) = answer["reasons"]
        assert re.match(r"[0-9]+ processes not permitted to be looked at \\(root: [0-9]+\\)", reason), reason
        assert "not everything was seen: " + reason in done.stderr
        # Kernel threads are not permitted either, and no process of anybody's.
        flags = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), open(f"/proc/{{pid}}/stat", "rb") as file:
                flags.append(int(file.read().rpartition(b")")[2].split()[6]))
        kernel_threads = sum(bool(flag & 0x200000) for flag in flags)
        assert kernel_threads and int(reason.split()[0]) < len(flags) - kernel_threads + 5
    """)


def test_found_wins_over_not_everywhere(play):
    play(f"""
        hold(GPU)
        code = "import os; os.open('/dev/nvidia0', 2); print('up', flush=True); input()"
        other = subprocess.Popen(
            [*{UNPRIVILEGED}, sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started(other.pid)
        assert other.stdout.readline() == b"up\\n"
        answer = json.loads(holders("--json", prefix={UNPRIVILEGED}, code=1).stdout)
        assert [row["pid"] for row in answer["holders"]] == [other.pid] and answer["complete"] is False
    """)


def test_proc_not_mounted(play):
    play("""
        subprocess.run(["mount", "-t", "tmpfs", "none", "/proc"], check=True)
        done = holders("--json")
        assert done.returncode == 3 and "not mounted" in done.stderr
        assert json.loads(done.stdout)["complete"] is False
    """)


def test_a_hidden_proc(play):
    play(
        f"""
        subprocess.run(["mount", "-t", "proc", "-o", "hidepid=ptraceable", "proc", "/proc"], check=True)
        done = holders("--json", prefix={UNPRIVILEGED}, code=3)
        assert "hidepid" in done.stderr
        """,
        unshare=("--pid", "--fork"),
    )

"""`holders` in awkward places: other namespaces, hostile names, processes that come and go, what may not be seen."""

from __future__ import annotations

import private_dev
import pytest

reason = private_dev.why_not()
pytestmark = pytest.mark.skipif(reason is not None, reason=str(reason))


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
        (other,) = [row for row in rows().values() if row["ppid"] == process.pid]
        assert other["other_pid_namespace"] is True and other["pid_in_namespace"] == 1 and other["pid"] != 1
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
        lines = [line for line in done.stdout.splitlines() if line.split()[:1] in ([str(child)], [str(process.pid)])]
        assert len(lines) == 2
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


# What an ordinary user lacks is the capability to look into others' processes; a root without capabilities is refused
# just the same, and can still read its own interpreter wherever that is installed.
UNPRIVILEGED = ("setpriv", "--bounding-set=-all")


def test_what_is_not_permitted_is_said(play):
    play(f"""
        hold(GPU)
        done = holders("--json", prefix={UNPRIVILEGED})
        answer = json.loads(done.stdout)
        assert os.getpid() not in [row["pid"] for row in answer["holders"]] and answer["complete"] is False
        assert done.returncode == (1 if answer["holders"] else 3)
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
        assert other.pid in [row["pid"] for row in answer["holders"]] and answer["complete"] is False
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

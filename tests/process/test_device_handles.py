"""Device descriptors: seen, told, released; and /proc that can't be read."""

from __future__ import annotations

import os
import pwd

import pytest
from support.child import python
from support.namespaces import DEVICES, NO_PROC, python_with


def test_handles_are_listed_and_only_device_nodes_are() -> None:
    code = """
    import os
    import cuda_fork_guard as guard
    numbers = [os.open(path, os.O_RDWR) for path in ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/null", "/dev/nvidia0")]
    os.open("/dev/nvidia-uvm.note", os.O_RDWR | os.O_CREAT)
    handles = guard.status().handles
    expected = [f"{numbers[0]} -> /dev/nvidiactl", f"{numbers[1]} -> /dev/nvidia-uvm", f"{numbers[3]} -> /dev/nvidia0"]
    assert [handle for handle in handles if ".note" not in handle] == expected, handles
    os.unlink("/dev/nvidia0")
    assert any(handle.startswith(f"{numbers[3]} -> /dev/nvidia0") for handle in guard.status().handles)
    """
    python_with(DEVICES, code).ok()


def test_releasing_puts_null_in_their_place() -> None:
    code = """
    import os, sys
    import cuda_fork_guard as guard
    from cuda_fork_guard.testing import simulated_cuda
    with simulated_cuda():
        numbers = [os.open(path, os.O_RDWR) for path in ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0")]
        plain = os.open("/dev/null", os.O_RDWR)
        before = sorted(os.listdir("/proc/self/fd"))
        pid = os.fork()
        if pid == 0:
            kept = guard.verify_worker("cpu-only")
            assert kept.released_handles == 0 and len(guard.status().handles) == 3
            report = guard.verify_worker("cpu-only", release_handles=True)
            assert report.released_handles == 3, report
            assert guard.status().handles == ()
            assert sorted(os.listdir("/proc/self/fd")) == before
            for number in numbers:
                assert os.readlink(f"/proc/self/fd/{number}") == "/dev/null"
                assert not os.get_inheritable(number)
            assert guard.verify_worker("cpu-only", release_handles=True).released_handles == 0
            sys.exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        assert len(guard.status().handles) == 3
    """
    python_with(DEVICES, code).ok()


def test_a_child_that_never_had_the_guard_is_known_by_its_handles() -> None:
    """Forked before the guard was imported: an open nvidia-uvm beside a driver that is not up in it."""
    code = """
    import ctypes, os, sys
    cuda = ctypes.CDLL(sys.argv[1])
    assert cuda.cuInit(0) == 0
    os.open("/dev/nvidia-uvm", os.O_RDWR)
    if (pid := os.fork()) == 0:
        import cuda_fork_guard as guard
        status = guard.status()
        assert (status.inherited, status.driver, status.fork_is_safe) == (True, "inherited", False), status
        guard.install("block")
        for refused in (guard.check_fork, os.fork):
            try:
                refused()
            except guard.UnsafeForkError as error:
                assert "inherited CUDA" in str(error), error
            else:
                os._exit(1)
        try:
            guard.verify_worker()
        except guard.InheritedCudaError as error:
            assert "before cuda_fork_guard" in str(error), error
        else:
            os._exit(1)
        with guard.allow_fork("to look at the grandchild"):
            if (grandchild := os.fork()) == 0:
                os._exit(70 + (guard.status().inherited is True))
        assert os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1]) == 71
        os._exit(0)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    """
    python_with(DEVICES, code, _simulated()).ok()


def test_a_child_of_an_unknown_child_is_unknown_too() -> None:
    code = """
    import os, sys
    if (pid := os.fork()) == 0:
        import cuda_fork_guard as guard
        assert guard.status().inherited is None
        if (child := os.fork()) == 0:
            status = guard.status()
            assert any("inherited: unknown" in reason for reason in status.reasons), status
            os._exit(80 + (status.inherited is None))
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 81
    """
    python(code).ok()


def test_proc_not_mounted() -> None:
    code = """
    import os
    import cuda_fork_guard as guard
    from cuda_fork_guard.testing import simulated_cuda
    assert not os.path.exists("/proc/self")
    status = guard.status()
    assert (status.supported, status.driver, status.inherited) == (True, "absent", None), status
    assert status.handles is None and status.threads is None
    for field in ("inherited", "handles", "threads"):
        assert any(reason.startswith(field + ": unknown") for reason in status.reasons), status
    assert guard.verify_worker().inherited is None
    try:
        guard.verify_worker("cpu-only", release_handles=True)
    except guard.WorkerError as error:
        assert "can't be released: No such file or directory" in str(error), error
    else:
        raise AssertionError("nothing could be released")
    with simulated_cuda():
        pid = os.fork()
        if pid == 0:
            os._exit(90 + (guard.status().inherited is True))
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 91
        with guard.policy("block"):
            try:
                os.fork()
            except guard.UnsafeForkError:
                pass
            else:
                os._exit(1)
        assert guard.events().counts["fork"] == 1
        assert not any(reason.startswith("guard:") for reason in guard.status().reasons), guard.status()
    """
    python_with(NO_PROC, code).ok()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up its identity and keep a mount it made")
def test_an_unreadable_fd_table() -> None:
    """As some sandboxes have it: the folder is there and may not be opened."""
    hidden = "mount -t tmpfs -o mode=0 tmpfs /proc/$$/fd"  # exec keeps the number
    nobody = pwd.getpwnam("nobody").pw_uid
    code = f"""
    import os
    import cuda_fork_guard as guard
    os.setresuid({nobody}, {nobody}, {nobody})
    status = guard.status()
    assert status.handles is None, status
    assert any("handles: unknown" in reason and "Permission denied" in reason for reason in status.reasons), status
    assert status.inherited is False
    try:
        guard.verify_worker("cpu-only", release_handles=True)
    except guard.WorkerError as error:
        print(error)
    """
    assert "can't be released: Permission denied" in python_with(hidden, code).ok().out


LIMIT = """
import os, resource
import cuda_fork_guard as guard
def fill():
    try:
        while True:
            os.open("/", os.O_RDONLY)
    except OSError:
        pass
"""


def test_no_descriptor_left() -> None:
    code = f"""{LIMIT}
from cuda_fork_guard.testing import simulated_cuda
numbers = [os.open(path, os.O_RDWR) for path in ("/dev/nvidiactl", "/dev/nvidia-uvm")]
with simulated_cuda():
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 4096))
    fill()
    status = guard.status()
    assert status.handles == (f"{{numbers[0]}} -> /dev/nvidiactl", f"{{numbers[1]}} -> /dev/nvidia-uvm"), status
    assert status.driver == "initialized" and not status.fork_is_safe
    assert status.threads is None and any("Too many open files" in reason for reason in status.reasons), status
    pid = os.fork()
    if pid == 0:
        try:
            guard.verify_worker("cpu-only", release_handles=True)
        except guard.WorkerError as error:
            assert "can't be released: Too many open files" in str(error), error
            assert len(guard.status().handles) == 2
            os._exit(30 + (guard.status().inherited is True))
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 31
    assert guard.events().counts["fork"] == 1
"""
    python_with(DEVICES, code).ok()


def test_a_limit_lowered_below_open_handles() -> None:
    """Descriptors above the limit stay open: they must not be overlooked where each number is asked for by its path."""
    code = f"""{LIMIT}
number = os.open("/dev/nvidia-uvm", os.O_RDWR)
os.dup2(number, 3000)
os.close(number)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
fill()
assert guard.status().handles == ("3000 -> /dev/nvidia-uvm",), guard.status()
"""
    python_with(DEVICES, code).ok()


def test_installed_again_with_no_descriptor_left() -> None:
    code = """
    import os, resource
    import cuda_fork_guard as first
    resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
    try:
        while True:
            os.open("/", os.O_RDONLY)
    except OSError:
        pass
    first.uninstall()
    first.install("block")  # again, with nothing left to open with
    assert first.status().policy == "block"
    """
    python(code).ok()


def _simulated() -> str:
    return python("from cuda_fork_guard.testing import driver_folder; print(driver_folder())").ok().out.strip() + (
        "/libcuda.so.1"
    )

"""Cases 2, 3, 15 and 18, and driver states of a process as they come and go."""

from __future__ import annotations

import pytest
from support.child import environment, python


def test_driver_states_in_their_order() -> None:
    code = """
    import ctypes
    import cuda_fork_guard as guard
    from cuda_fork_guard.testing import simulated_cuda
    told = [guard.status().driver]
    with simulated_cuda(devices=3, state="loaded") as simulated:
        status = guard.status()
        assert status.simulated and status.library == simulated.path and status.driver_version >= 12000, status
        told.append(status.driver)
        cuda = ctypes.CDLL("libcuda.so.1")
        assert cuda.cuInit(0) == 0
        status = guard.status()
        assert status.active_devices == () and status.cuda_is_usable is None and not status.fork_is_safe, status
        told.append(status.driver)
        context = ctypes.c_void_p()
        for device in (2, 0):
            assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
        status = guard.status()
        assert status.active_devices == (0, 2) and status.cuda_is_usable is True, status
        told.append(status.driver)
        for device in (2, 0):
            assert cuda.cuDevicePrimaryCtxRelease_v2(device) == 0
        told.append(guard.status().driver)
    told.append(guard.status().fork_is_safe)
    print(*told)
    """
    assert python(code).ok().out == "absent loaded initialized active initialized True\n"


def test_case_2_a_mere_device_count_makes_it_initialized_without_a_context() -> None:
    code = """
    import ctypes
    import cuda_fork_guard as guard
    from cuda_fork_guard.testing import simulated_cuda
    with simulated_cuda(state="loaded"):
        cuda = ctypes.CDLL("libcuda.so.1")
        def device_count():  # what torch.cuda.device_count() does, below
            count = ctypes.c_int()
            assert cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0
            return count.value
        assert device_count() == 1
        status = guard.status()
        assert (status.driver, status.active_devices, status.cuda_is_usable) == ("initialized", (), None), status
        assert status.fork_is_safe is False
    """
    python(code).ok()


def test_case_3_cuinit_through_ctypes_is_seen_at_the_next_fork() -> None:
    code = """
    import ctypes, os
    import cuda_fork_guard as guard
    from cuda_fork_guard.testing import driver_folder
    guard.install("block")
    cuda = ctypes.CDLL(os.path.join(driver_folder(), "libcuda.so.1"))
    assert cuda.cuInit(0) == 0
    try:
        os.fork()
    except guard.UnsafeForkError:
        print(guard.status().driver)
    """
    assert python(code).ok().out == "initialized\n"


@pytest.mark.parametrize("policy", ["watch", "warn", "block"])
def test_case_15_a_fork_inside_a_c_library_is_recorded_and_refused_by_nobody(policy: str) -> None:
    code = """
    import ctypes, os
    import cuda_fork_guard as guard
    from cuda_fork_guard.testing import simulated_cuda
    libc = ctypes.CDLL(None)
    with simulated_cuda():
        pid = libc.fork()
        if pid == 0:
            status = guard.status()
            try:
                guard.verify_worker("clean")
            except guard.InheritedCudaError as error:
                assert "native fork()" in str(error), error
                os._exit(40 + (status.inherited is True) + (status.driver == "inherited"))
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 42
        assert guard.events().counts["fork"] == 1
        print([event for event in guard.events() if event.kind == "fork"][0])
    """
    finished = python(code, env=environment(CUDA_FORK_GUARD=policy), flags=("-W", "error")).ok()
    assert "native fork()" in finished.out and finished.err == ""


SLOW = """
import ctypes, os, threading
import cuda_fork_guard as guard
from cuda_fork_guard.testing import simulated_cuda

with simulated_cuda(state="loaded") as simulated:
    cuda = ctypes.CDLL("libcuda.so.1")
    simulated.slow("cuInit", 1500)
    thread = threading.Thread(target=cuda.cuInit, args=(0,))
    thread.start()
    while not inside():
        pass
    status = guard.status()
    pid = os.fork()
    if pid == 0:
        child = guard.status()
        report = guard.verify_worker("clean")
        known = any("inherited: unknown" in reason for reason in child.reasons)
        os._exit(50 + (child.inherited is None) + (report.inherited is None) + known)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 53
    assert thread.is_alive()  # nothing waited for the slow call
    assert status.driver == "tried", status
    events = [event for event in guard.events() if event.kind == "fork"]
    assert len(events) == 1 and "<string>" in events[0].text, events
    thread.join()
    assert guard.status().driver == "initialized"
    print("done")
"""


@pytest.mark.parametrize("policy", ["watch", "warn", "block"])
def test_case_18_a_fork_while_another_thread_is_inside_cuinit(policy: str) -> None:
    # Python's own "multi-threaded fork" warning (3.12) is not the guard's.
    code = SLOW.replace("inside()", "guard.guard.native.state()['cuinit_calls']")
    flags = ("-W", "error", "-W", "ignore::DeprecationWarning")
    finished = python(code, env=environment(CUDA_FORK_GUARD=policy), flags=flags, limit=20).ok()
    assert finished.out == "done\n" and finished.err == ""


def test_threads_are_listed_by_name_in_status_and_in_the_record() -> None:
    code = """
    import os, threading
    import cuda_fork_guard as guard
    from cuda_fork_guard.testing import simulated_cuda
    with simulated_cuda():
        gate = threading.Event()
        started = threading.Barrier(3)
        def wait():
            started.wait()
            gate.wait()
        names = ("pin_memory", "caf\\u00e9 \\udcff\\n")
        threads = [threading.Thread(target=wait, name=name, daemon=True) for name in names]
        for thread in threads:
            thread.start()
        started.wait()
        assert sorted(guard.status().threads) == sorted(["MainThread", "pin_memory", "caf\\u00e9 \\udcff\\n"])
        pid = os.fork()
        if pid == 0:
            os._exit(guard.status().threads != ("MainThread",))
        assert os.waitpid(pid, 0)[1] == 0
        event = [event for event in guard.events() if event.kind == "fork"][0]
        assert "pin_memory" in event.text and "caf\\u00e9" in event.text, event
        gate.set()
        for thread in threads:
            thread.join()
    """
    python(code, flags=("-W", "ignore::DeprecationWarning")).ok()


def test_a_child_forked_from_another_thread_has_one_main_thread() -> None:
    code = """
    import os, threading
    import cuda_fork_guard as guard
    from cuda_fork_guard.testing import simulated_cuda
    with simulated_cuda():
        def fork():
            pid = os.fork()
            if pid == 0:
                os._exit(60 + (guard.status().threads == ("forker",)) + (guard.status().inherited is True))
            codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        codes = []
        thread = threading.Thread(target=fork, name="forker")
        thread.start()
        thread.join()
        assert codes == [62], codes
    """
    python(code, flags=("-W", "ignore::DeprecationWarning")).ok()

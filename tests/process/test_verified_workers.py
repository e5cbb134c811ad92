"""``verify_worker`` in one process: what each expectation passes, and what it refuses."""

from __future__ import annotations

import json

import pytest
from support.child import environment, python

PRELUDE = """
import ctypes, json, os
import cuda_fork_guard as guard
from cuda_fork_guard.testing import simulated_cuda
def verdict(*args, **kw):
    try:
        return guard.verify_worker(*args, **kw).as_dict()
    except guard.CudaForkGuardError as error:
        return f"{type(error).__name__}: {error}"
"""


def test_bad_arguments_are_value_errors_that_say_what_is_wrong() -> None:
    code = f"""{PRELUDE}
calls = {{
    "unknown expectation 'x'": dict(expect="x"),
    "unknown expectation None": dict(expect=None),
    "unknown expectation ['clean']": dict(expect=["clean"]),
    "expect='fresh' needs device=": dict(expect="fresh"),
    "device=-1 is not an ordinal": dict(expect="fresh", device=-1),
    "device=True is not an ordinal": dict(expect="fresh", device=True),
    "device='0' is not an ordinal": dict(expect="fresh", device="0"),
    "device=0.0 is not an ordinal": dict(expect="fresh", device=0.0),
    "device= goes with expect='fresh' only": dict(expect="clean", device=0),
    "device= goes with expect='fresh' only, not with 'cpu-only'": dict(expect="cpu-only", device=0),
    "release_handles=True goes with expect='cpu-only' only": dict(expect="clean", release_handles=True),
    "release_handles=True goes with": dict(expect="fresh", device=0, release_handles=True),
    "release_handles=2": dict(expect="cpu-only", release_handles=2),
    "device=100000000000000000000": dict(expect="fresh", device=10**20),
}}
for text, arguments in calls.items():
    for call in (guard.verify_worker, guard.make_worker_init_fn):
        try:
            call(**arguments)
        except ValueError as error:
            assert text in str(error), (text, error)
        else:
            raise AssertionError((call, arguments))
for bad in (3, "fn"):
    try:
        guard.make_worker_init_fn(bad)
    except ValueError as error:
        assert "can't be called" in str(error)
    else:
        raise AssertionError(bad)
assert guard.status().driver == "absent"
"""
    python(code).ok()


def test_clean_and_cpu_only_in_a_process_without_cuda() -> None:
    code = f"""{PRELUDE}
print(json.dumps([verdict(), verdict("cpu-only"), verdict("cpu-only", release_handles=True)]))
"""
    clean, cpu_only, released = json.loads(python(code).ok().out)
    for report, expect in ((clean, "clean"), (cpu_only, "cpu-only"), (released, "cpu-only")):
        assert (report["expect"], report["driver"], report["inherited"]) == (expect, "absent", False)
        assert report["device"] is None and report["released_handles"] == 0 and report["start_method"] is None


@pytest.mark.parametrize("state", ["initialized", "active"])
def test_clean_and_cpu_only_where_the_worker_s_own_code_woke_cuda(state: str) -> None:
    code = f"""{PRELUDE}
with simulated_cuda(state={state!r}):
    print(json.dumps([verdict(), verdict("cpu-only")]))
"""
    for text in json.loads(python(code).ok().out):
        assert text.startswith("WorkerNotCleanError: [CFG202]") and "\n  woken:   " in text and "\n  do:      " in text
        assert state in text


def test_a_loaded_driver_is_clean() -> None:
    code = f"""{PRELUDE}
with simulated_cuda(state="loaded"):
    report = guard.verify_worker()
    assert report.simulated
"""
    python(code).ok()


def test_a_failed_cuinit_passes_clean_and_is_said() -> None:
    code = f"""{PRELUDE}
with simulated_cuda(state="loaded") as simulated:
    simulated.fail("cuInit", 999)
    assert ctypes.CDLL("libcuda.so.1").cuInit(0) == 999
    report = guard.verify_worker()
    assert report.driver == "tried" and any("cuInit was called" in reason for reason in report.reasons), report
"""
    python(code).ok()


def test_fresh_makes_an_own_context_and_proves_it() -> None:
    code = f"""{PRELUDE}
with simulated_cuda(devices=3, state="loaded"):
    cuda = ctypes.CDLL("libcuda.so.1")
    report = guard.verify_worker("fresh", device=2)
    assert (report.driver, report.device, report.inherited, report.simulated) == ("active", 2, False, True), report
    assert report.device_uuid.startswith("GPU-") and len(report.device_uuid) == 40, report
    current = ctypes.c_void_p(7)
    assert cuda.cuCtxGetCurrent(ctypes.byref(current)) == 0 and current.value is None
    assert guard.status().active_devices == (2,)
    for _ in range(3):  # in a parent: is my own context still sound?
        assert guard.verify_worker("fresh", device=2).device_uuid == report.device_uuid
    # One reference is kept, however often it was proved.
    assert cuda.cuDevicePrimaryCtxRelease_v2(2) == 0
    assert guard.status().active_devices == ()
"""
    python(code).ok()


def test_fresh_is_shared_with_whoever_had_the_context_and_leaves_his_current() -> None:
    code = f"""{PRELUDE}
with simulated_cuda(devices=2, state="active"):
    cuda = ctypes.CDLL("libcuda.so.1")
    mine = ctypes.c_void_p()
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(mine), 0) == 0
    assert cuda.cuCtxSetCurrent(mine) == 0
    guard.verify_worker("fresh", device=0)
    current = ctypes.c_void_p()
    assert cuda.cuCtxGetCurrent(ctypes.byref(current)) == 0 and current.value == mine.value
"""
    python(code).ok()


def test_the_wrong_device_and_one_that_does_not_exist() -> None:
    code = f"""{PRELUDE}
with simulated_cuda(devices=2, state="active"):
    print(json.dumps([verdict("fresh", device=1), verdict("fresh", device=99), verdict("fresh", device=0)]))
"""
    wrong, missing, right = json.loads(python(code, env=environment(CUDA_VISIBLE_DEVICES="1,0")).ok().out)
    assert wrong.startswith("WrongDeviceError: [CFG203]") and "active on device 0" in wrong and "device 1" in wrong
    assert missing.startswith("NoSuchDeviceError: [CFG203] device 99 does not exist")
    assert "2 devices (0 to 1; CUDA_VISIBLE_DEVICES=1,0)" in missing
    assert right["device"] == 0


@pytest.mark.parametrize("call", ["cuMemAlloc_v2", "cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2", "cuCtxPushCurrent_v2"])
def test_a_context_that_does_not_work_is_no_fresh_one(call: str) -> None:
    code = f"""{PRELUDE}
with simulated_cuda(state="loaded") as simulated:
    simulated.fail({call!r}, 700)
    failed = verdict("fresh", device=0)
    simulated.fail({call!r}, 0)
    assert guard.verify_worker("fresh", device=0).driver == "active"
    print(failed)
"""
    assert f"{call} returned 700 (CUDA_ERROR_ILLEGAL_ADDRESS)" in python(code).ok().out


def test_an_inherited_worker() -> None:
    code = f"""{PRELUDE}
with simulated_cuda():
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        # The grandchild of a poisoned process is poisoned too.
        child = os.fork()
        if child == 0:
            told = [verdict(), verdict("fresh", device=0), verdict("cpu-only"), guard.status().as_dict()]
            os.write(write, json.dumps(told).encode())
        else:
            os.waitpid(child, 0)
        os._exit(0)
    os.close(write)
    os.waitpid(pid, 0)
    with open(read) as pipe:
        print(pipe.read())
"""
    clean, fresh, cpu_only, status = json.loads(python(code).ok().out)
    for text in (clean, fresh):
        assert text.startswith("InheritedCudaError: [CFG201] worker (pid ") and "\n  forked:  <string>:16 " in text
        assert "\n  woken:   " in text and "\n  do:      " in text and "expect='cpu-only'" in text
    assert cpu_only["inherited"] is True and cpu_only["driver"] == "inherited"
    assert status["inherited"] is True and status["cuda_is_usable"] is False and status["fork_is_safe"] is False


def test_verdicts_are_events_of_the_family() -> None:
    code = f"""{PRELUDE}
guard.verify_worker()
with simulated_cuda():
    verdict()
    pid = os.fork()
    if pid == 0:
        verdict()
        guard.verify_worker("cpu-only")
        os._exit(0)
    os.waitpid(pid, 0)
texts = [event.text for event in guard.events() if event.kind == "worker"]
assert guard.events().counts["worker"] == 4
for text, expected in zip(texts, ("clean: verified", "clean: [CFG202]", "clean: [CFG201]", "cpu-only: verified")):
    assert text.startswith(expected) and "\\n" not in text, texts
"""
    python(code).ok()

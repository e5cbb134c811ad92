"""The simulated driver does as it is told: slow calls, failing calls, other numbers of devices; by the block's object
and by CUDA_FORK_GUARD_SIM."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.child import Finished, environment, python
from support.driver import native_libraries
from support.driver.kinds import simulated

START = """
import ctypes, json, os, sys, threading, time
from cuda_fork_guard.testing import simulated_cuda
def cuda():
    return ctypes.CDLL("libcuda.so.1")
def synchronize(times=1):
    return [cuda().cuCtxSynchronize() for _ in range(times)]
"""


def seen(body: str, **variables: str) -> list[Any]:
    finished = python(START + body, env=environment(**variables)).ok()
    return [json.loads(line) for line in finished.lines]


def test_calls_fail_as_told() -> None:
    assert seen(
        """
with simulated_cuda() as driver:
    print(json.dumps(synchronize()))
    driver.fail("cuCtxSynchronize", 719)
    print(json.dumps(synchronize(3)))
    driver.fail("cuCtxSynchronize", 700, times=2)
    print(json.dumps(synchronize(3)))
    driver.fail("cuCtxSynchronize", 999)
    driver.fail("cuCtxSynchronize", 0)
    driver.fail("cuDriverGetVersion", 34)
    driver.fail("cuStreamCreate", 2, times=1)
    streams = [cuda().cuStreamCreate(), cuda().cuStreamCreate()]
    print(json.dumps([synchronize(), cuda().cuDriverGetVersion(None), *streams]))
    driver.fail("cuCtxSynchronize", 719)
with simulated_cuda():
    print(json.dumps([synchronize(), cuda().cuDriverGetVersion(None)]))
"""
    ) == [[201], [719] * 3, [700, 700, 201], [[201], 34, 2, 801], [[201], 1]]


def test_failing_cuinit_calls_the_hook_and_may_work_later(tmp_path: Path) -> None:
    hook = native_libraries.build("hook", tmp_path)
    assert seen(
        """
with simulated_cuda(state="loaded") as driver:
    read, write = os.pipe()
    os.environ["HOOK_SAYS"] = str(write)
    driver.fail("cuInit", 999, times=2)
    codes = [cuda().cuInit(0), synchronize()[0], cuda().cuInit(0), cuda().cuInit(0), synchronize()[0]]
    print(json.dumps([codes, len(os.read(read, 4096).splitlines())]))
""",
        CUDA_INJECTION64_PATH=hook,
    ) == [[[999, 3, 999, 0, 201], 1]]


def test_slow_calls_hold_only_their_callers() -> None:
    """While one thread is inside a slow cuInit, another is answered; a second cuInit waits for the first."""
    [(questions, order, took)] = seen(
        """
with simulated_cuda(state="loaded") as driver:
    driver.slow("cuInit", 300)
    order = []
    def initialize(name):
        order.append((name, cuda().cuInit(0)))
    begun = time.monotonic()
    threads = [threading.Thread(target=initialize, args=[name]) for name in "ab"]
    for thread in threads:
        thread.start()
    questions = synchronize(), len(order)
    for thread in threads:
        thread.join()
    print(json.dumps([questions, sorted(order), time.monotonic() - begun]))
"""
    )
    assert questions == [[3], 0]
    assert order == [["a", 0], ["b", 0]]
    assert took >= 0.6


def test_devices_can_be_changed_for_the_next_init() -> None:
    assert seen(
        """
with simulated_cuda(state="loaded") as driver:
    number = ctypes.c_int()
    driver.devices = 5
    codes = cuda().cuInit(0), cuda().cuDeviceGetCount(ctypes.byref(number)), number.value, driver.devices
    driver.devices = 2
    print(json.dumps([codes, cuda().cuDeviceGetCount(ctypes.byref(number)), number.value]))
    print(json.dumps(os.environ["CUDA_FORK_GUARD_SIM"]))
"""
    ) == [[[0, 0, 5, 5], 0, 5], "devices=2"]


def test_bad_arguments_are_value_errors() -> None:
    [errors] = seen(
        """
errors = []
with simulated_cuda() as driver:
    def refused(call):
        try:
            call()
        except ValueError as error:
            errors.append(str(error))
    refused(lambda: driver.slow("cuNope", 1))
    refused(lambda: driver.slow("cuInit", -1))
    refused(lambda: driver.fail("cuInit ", 1))
    refused(lambda: driver.fail("", 1))
    refused(lambda: driver.fail("cuInit", -1))
    refused(lambda: driver.fail("cuInit", 1, times=0))
    refused(lambda: setattr(driver, "devices", 17))
    print(json.dumps([*errors, os.environ["CUDA_FORK_GUARD_SIM"]]))
"""
    )
    assert errors == [
        "the driver has no entry 'cuNope'",
        "milliseconds must be from 0 to 3600000, not -1",
        "the driver has no entry 'cuInit '",
        "the driver has no entry ''",
        "code must be from 0 to 9999, not -1",
        "times must be from 1 to 1000000, or None for always, not 0",
        "devices must be from 0 to 16, not 17",
        "devices=1",
    ]


PROBE = """
import ctypes, json, sys
library, number, version = ctypes.CDLL(sys.argv[1]), ctypes.c_int(-1), ctypes.c_int()
codes = [library.cuInit(0) for _ in range(3)]
library.cuDeviceGetCount(ctypes.byref(number)), library.cuDriverGetVersion(ctypes.byref(version))
print(json.dumps([codes, number.value, version.value, library.cuCtxSynchronize()]))
"""


def probe(settings: str) -> Finished:
    return python(PROBE, simulated(0).path, env=environment(CUDA_FORK_GUARD_SIM=settings)).ok()


@pytest.mark.parametrize(
    ("settings", "answer"),
    [
        ("", [[0, 0, 0], 1, 12080, 201]),
        ("devices=16", [[0, 0, 0], 16, 12080, 201]),
        ("devices=0;version=11040", [[100, 100, 100], -1, 11040, 3]),
        ("fail=cuInit:999:2;devices=3;", [[999, 999, 0], 3, 12080, 201]),
        ("fail=cuInit:34,cuCtxSynchronize:719", [[34, 34, 34], -1, 12080, 719]),
        ("slow=cuInit:1,cuDeviceGetCount:1;fail=cuCtxSynchronize:700:1", [[0, 0, 0], 1, 12080, 700]),
    ],
)
def test_settings_at_load(settings: str, answer: list[object]) -> None:
    finished = probe(settings)
    assert json.loads(finished.out) == answer
    assert finished.err == ""


@pytest.mark.parametrize(
    "settings",
    [
        "devices=17",
        "devices=-1",
        "devices=x",
        "devices",
        "devices=1x",
        "version=0",
        "nonsense=1",
        "fail=cuInit",
        "fail=cuNope:1",
        "fail=cuInit:x",
        "fail=cuInit:1:2:3",
        "fail=cuInit:1,",
        "slow=cuInit:5:5",
        "slow=:5",
    ],
)
def test_settings_that_make_no_sense_are_named(settings: str) -> None:
    assert probe(settings).err == f"simulated libcuda: CUDA_FORK_GUARD_SIM={settings} makes no sense\n"


def test_a_block_starts_from_nothing() -> None:
    """Contexts, memory and current contexts, also of other threads, are gone in the next block."""
    assert seen(
        """
def state():
    flags, active, current = ctypes.c_uint(), ctypes.c_int(), ctypes.c_void_p()
    library = cuda()
    library.cuDevicePrimaryCtxGetState(0, ctypes.byref(flags), ctypes.byref(active))
    return [active.value, library.cuCtxGetCurrent(ctypes.byref(current)), current.value is None]

turn, over = threading.Semaphore(0), threading.Semaphore(0)
others = []
def other():
    context, pointer = ctypes.c_void_p(), ctypes.c_ulonglong()
    cuda().cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    cuda().cuCtxPushCurrent_v2(context)
    others.append(cuda().cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(1 << 20)))
    over.release()
    turn.acquire()
    others.append(state())
    others.append(cuda().cuMemFree_v2(pointer))
    cuda().cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    cuda().cuCtxSetCurrent(context)
    others.append(cuda().cuMemFree_v2(pointer))
    over.release()

with simulated_cuda(state="active"):
    thread = threading.Thread(target=other)
    thread.start()
    over.acquire()
with simulated_cuda():
    print(json.dumps(state()))
    turn.release()
    thread.join()
    print(json.dumps(others))
"""
    ) == [[0, 0, True], [0, [0, 0, True], 201, 1]]


def test_an_accepted_hook_is_asked_anew_in_the_next_block(tmp_path: Path) -> None:
    hook = native_libraries.build("hook", tmp_path)
    assert seen(
        """
read, write = os.pipe()
os.environ["HOOK_SAYS"] = str(write)
for _ in range(2):
    with simulated_cuda():
        print(json.dumps([cuda().cuInit(0), len(os.read(read, 4096).splitlines())]))
""",
        CUDA_INJECTION64_PATH=hook,
    ) == [[0, 1], [0, 1]]

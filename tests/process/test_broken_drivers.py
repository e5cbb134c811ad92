"""A libcuda that lacks symbols, is a stub, is too old, or answers what it should not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.child import environment, python
from support.compiled import Compile

NAMES = {
    4: "DEINITIALIZED", 34: "STUB_LIBRARY", 100: "NO_DEVICE", 304: "OPERATING_SYSTEM",
    803: "SYSTEM_DRIVER_MISMATCH", 999: "UNKNOWN",
}  # fmt: skip

FRESH = """
import cuda_fork_guard as guard
try:
    report = guard.verify_worker("fresh", device=0)
except Exception as error:
    print(type(error).__name__, error, sep=": ")
else:
    print("proved", report.driver, report.device, report.device_uuid, *report.reasons, sep="|")
"""

LOADED = """
import ctypes, json, os, sys
import cuda_fork_guard as guard
cuda = ctypes.CDLL(sys.argv[1])
answers = [guard.status().as_dict()]
if hasattr(cuda, "cuInit"):
    cuda.cuInit(0)
answers.append(guard.status().as_dict())
pid = os.fork()
if pid == 0:
    os._exit(5)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5
for expect in ("clean", "cpu-only"):
    try:
        answers.append(guard.verify_worker(expect).driver)
    except guard.CudaForkGuardError as error:
        answers.append(f"{type(error).__name__}: {error}")
print(json.dumps(answers))
"""


def fresh(library: Path) -> str:
    """What a worker says that finds this libcuda on its loader path."""
    finished = python(FRESH, env=environment(LD_LIBRARY_PATH=str(library.parent))).ok()
    assert finished.err == ""
    return finished.out.strip()


def loaded(library: Path, policy: str = "watch") -> tuple[dict[str, object], dict[str, object], str, str]:
    """(status once it is loaded, after its cuInit, verified as clean, as cpu-only); a fork went well in between."""
    finished = python(LOADED, str(library), env=environment(CUDA_FORK_GUARD=policy), flags=("-W", "error")).ok()
    assert finished.err == ""
    first, second, clean, cpu_only = json.loads(finished.out)
    return first, second, clean, cpu_only


@pytest.mark.parametrize("code", NAMES)
def test_fresh_names_the_call_and_its_code(compiled: Compile, code: int) -> None:
    answer = fresh(compiled("tiny_libcuda.c", f"INIT={code}", soname="libcuda.so.1"))
    assert answer.startswith("DriverUnavailableError: [CFG204] cuInit returned")
    assert f"{code} (CUDA_ERROR_{NAMES[code]})" in answer and "device 0" in answer


@pytest.mark.parametrize("code", NAMES)
def test_a_failed_cuinit_leaves_forks_safe(compiled: Compile, code: int) -> None:
    library = compiled("tiny_libcuda.c", f"INIT={code}", soname="libcuda.so.1")
    first, second, clean, cpu_only = loaded(library, "block")
    assert first["library"] == str(library) and first["driver_version"] == 11040
    for status in (first, second):
        assert status["fork_is_safe"] is True and status["inherited"] is False
        assert status["driver"] not in ("initialized", "active", "absent")
    assert "Error" not in str(clean) + str(cpu_only)


@pytest.mark.parametrize("code", NAMES)
def test_whatever_the_count_answers_is_told_and_harms_nothing(compiled: Compile, code: int) -> None:
    library = compiled("tiny_libcuda.c", f"INIT={code}", f"COUNT={code}", soname="libcuda.so.1")
    first, second, _, _ = loaded(library, "block")
    for status in (first, second):
        reasons = status["reasons"]
        assert isinstance(reasons, list) and any(f"{code} (CUDA_ERROR_{NAMES[code]})" in one for one in reasons)
        assert status["driver"] not in ("initialized", "active")
    answer = fresh(library)
    assert answer.startswith("DriverUnavailableError: [CFG204] cuInit returned")


NEEDED = [
    "cuInit", "cuDeviceGetCount", "cuDeviceGet", "cuDevicePrimaryCtxGetState", "cuDevicePrimaryCtxRetain",
    "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2", "cuMemAlloc_v2", "cuMemFree_v2", "cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2",
]  # fmt: skip


@pytest.mark.parametrize("symbol", NEEDED)
def test_fresh_names_the_function_that_is_missing(compiled: Compile, symbol: str) -> None:
    answer = fresh(compiled("tiny_libcuda.c", f"NO_{symbol}", soname="libcuda.so.1"))
    assert answer == f"DriverUnavailableError: [CFG204] the loaded libcuda does not export {symbol}: it is too old"


@pytest.mark.parametrize("symbol", ["cuDriverGetVersion", "cuDevicePrimaryCtxRelease_v2", "cuDeviceGetUuid"])
def test_fresh_does_without_what_is_not_needed(compiled: Compile, symbol: str) -> None:
    answer = fresh(compiled("tiny_libcuda.c", f"NO_{symbol}", soname="libcuda.so.1"))
    assert answer.startswith("proved|active|0|")
    if symbol == "cuDeviceGetUuid":
        assert "|None|" in answer and "device_uuid: this driver does not give it" in answer
    else:
        assert "|GPU-abababab-abab-abab-abab-abababababab" in answer


def test_other_bytes_than_were_written_are_no_proof(compiled: Compile) -> None:
    answer = fresh(compiled("tiny_libcuda.c", "SPOIL", soname="libcuda.so.1"))
    assert answer.startswith("DriverUnavailableError: [CFG204] device 0 read back other data")


def test_the_first_failing_step_is_the_one_that_is_told(compiled: Compile) -> None:
    answer = fresh(compiled("tiny_libcuda.c", "COPY=700", soname="libcuda.so.1"))
    assert "cuMemcpyHtoD_v2 returned 700 (CUDA_ERROR_ILLEGAL_ADDRESS)" in answer


def test_no_device_at_all_although_cuinit_succeeded(compiled: Compile) -> None:
    answer = fresh(compiled("tiny_libcuda.c", "DEVICES=0", soname="libcuda.so.1"))
    assert answer.startswith("NoSuchDeviceError: [CFG203] device 0 does not exist: this process sees 0 devices")
    assert "-1" not in answer


def test_a_library_that_can_not_be_loaded(tmp_path: Path) -> None:
    (tmp_path / "libcuda.so.1").write_bytes(b"no library")
    answer = fresh(tmp_path / "libcuda.so.1")
    assert (
        answer.startswith("DriverUnavailableError: [CFG204] no CUDA driver")
        and "libcuda.so.1: file too short" in answer
    )


def test_without_the_question_the_state_is_unknown(compiled: Compile) -> None:
    first, second, clean, _ = loaded(compiled("tiny_libcuda.c", "NO_cuDeviceGetCount", soname="libcuda.so.1"))
    for status in (first, second):
        assert status["driver"] is None and status["fork_is_safe"] is None
    assert clean.startswith("DriverUnavailableError: [CFG204] it can't be verified") and "cuDeviceGetCount" in clean


@pytest.mark.parametrize("symbol", ["cuDeviceGet", "cuDevicePrimaryCtxGetState"])
def test_up_without_a_way_to_ask_for_contexts_is_still_up(compiled: Compile, symbol: str) -> None:
    _, second, clean, cpu_only = loaded(compiled("tiny_libcuda.c", f"NO_{symbol}", soname="libcuda.so.1"))
    assert second["driver"] is None and second["fork_is_safe"] is False
    for verdict in (clean, cpu_only):
        assert verdict.startswith("WorkerNotCleanError: [CFG202]"), verdict


def test_a_library_with_nothing_in_it(compiled: Compile) -> None:
    defines = [f"NO_{symbol}" for symbol in (*NEEDED, "cuDriverGetVersion", "cuDeviceGetUuid")]
    first, _, _, _ = loaded(compiled("tiny_libcuda.c", *defines, soname="libcuda.so.1"))
    assert first["driver"] is None and first["driver_version"] is None


def test_another_library_s_name_is_not_a_driver(compiled: Compile) -> None:
    first, second, clean, _ = loaded(compiled("tiny_libcuda.c", soname="libcudart.so.12"))
    assert first["driver"] == second["driver"] == clean == "absent"


@pytest.mark.parametrize("order", [("down", "up"), ("up", "down")])
def test_two_drivers_are_both_asked(compiled: Compile, order: tuple[str, str]) -> None:
    paths = {
        "down": str(compiled("tiny_libcuda.c", "INIT=34", soname="libcuda.so.1")),
        "up": str(compiled("tiny_libcuda.c", "DEVICES=2", soname="libcuda.so.1")),
    }
    code = """
    import ctypes, sys
    import cuda_fork_guard as guard
    loaded = {path: ctypes.CDLL(path) for path in sys.argv[3:]}
    down, up = sys.argv[1:3]
    loaded[down].cuInit(0)
    assert guard.status().fork_is_safe
    loaded[up].cuInit(0)
    status = guard.status()
    assert (status.driver, status.library, status.fork_is_safe) == ("initialized", up, False), status
    """
    python(code, paths["down"], paths["up"], *(paths[name] for name in order)).ok()


def test_a_driver_that_is_unloaded_and_comes_back(compiled: Compile) -> None:
    """The CUDA runtime unloads libcuda after a failed start."""
    library = compiled("tiny_libcuda.c", "INIT=100", soname="libcuda.so.1")
    code = """
    import _ctypes, sys
    import cuda_fork_guard as guard
    told = []
    for _ in range(50):
        handle = _ctypes.dlopen(sys.argv[1], 2)
        told.append(guard.status().library)
        _ctypes.dlclose(handle)
        told.append(guard.status().driver)
    assert told == [sys.argv[1], "absent"] * 50, told
    with open("/proc/self/maps") as maps:
        assert sys.argv[1] not in maps.read()
    """
    python(code, str(library)).ok()

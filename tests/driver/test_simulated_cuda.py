"""simulated_cuda(): what a block brings up, takes down, refuses, and hands to programs started inside it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.driver.simulation import program


def test_states(tmp_path: Path) -> None:
    finished = program(
        """
for state in ("loaded", "initialized", "active", "initialized"):
    with simulated_cuda(devices=3, state=state) as driver:
        found = os.path.samefile(driver.path, driver_folder() + "/libcuda.so.1")
        print(state, *count(), active(), driver.devices, found)
    print("after", *count(), active())
""",
        tmp_path,
    ).ok()
    assert finished.lines == [
        "loaded 3 -1 -1 3 True",
        "after 3 -1 -1",
        "initialized 0 3 0 3 True",
        "after 3 -1 -1",
        "active 0 3 1 3 True",
        "after 3 -1 -1",
        "initialized 0 3 0 3 True",
        "after 3 -1 -1",
    ]


def test_the_guard_is_told(tmp_path: Path) -> None:
    finished = program(
        """
import cuda_fork_guard
with simulated_cuda(devices=2, state="active"):
    status = cuda_fork_guard.status()
    print(status.driver, status.active_devices, status.simulated, status.driver_version, status.fork_is_safe)
    print(os.path.samefile(status.library, driver_folder() + "/libcuda.so.1"))
print(cuda_fork_guard.status().fork_is_safe)
""",
        tmp_path,
    ).ok()
    assert finished.lines == ["active (0,) True 12080 False", "True", "True"]


def test_goes_down_when_the_body_raises(tmp_path: Path) -> None:
    finished = program(
        """
before = dict(os.environ)
try:
    with simulated_cuda(state="active"):
        raise KeyError("the body's own")
except KeyError as error:
    print(error, *count(), dict(os.environ) == before)
""",
        tmp_path,
        LD_LIBRARY_PATH="/somewhere",
    ).ok()
    assert finished.lines == ['"the body\'s own" 3 -1 True']


def test_variables_are_prefixed_and_restored(tmp_path: Path) -> None:
    finished = program(
        """
for before in (None, "", "/somewhere:/else"):
    os.environ.pop("LD_LIBRARY_PATH", None)
    if before is not None:
        os.environ["LD_LIBRARY_PATH"] = before
    with simulated_cuda(devices=2):
        print(os.environ["LD_LIBRARY_PATH"].replace(driver_folder(), "FOLDER"), os.environ["CUDA_FORK_GUARD_SIM"])
    print(os.environ.get("LD_LIBRARY_PATH"), os.environ.get("CUDA_FORK_GUARD_SIM"))
""",
        tmp_path,
    ).ok()
    assert finished.lines == [
        "FOLDER devices=2",
        "None None",
        "FOLDER devices=2",
        " None",
        "FOLDER:/somewhere:/else devices=2",
        "/somewhere:/else None",
    ]


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_find_the_same_driver(tmp_path: Path, method: str) -> None:
    """Not initialized there, two devices, and failing as told."""
    finished = program(
        f"""
import multiprocessing

def work(_):
    library = ctypes.CDLL("libcuda.so.1")
    path = [line.split()[-1] for line in open("/proc/self/maps") if "libcuda.so" in line][0]
    context = ctypes.c_void_p()
    codes = count(), library.cuInit(0), count(), library.cuDevicePrimaryCtxRetain(ctypes.byref(context), 1)
    return codes, library.cuCtxSynchronize(), os.path.samefile(path, driver_folder() + "/libcuda.so.1")

if __name__ == "__main__":
    with simulated_cuda(devices=2) as driver:
        driver.fail("cuCtxSynchronize", 719)
        with multiprocessing.get_context({method!r}).Pool(1) as pool:
            print(pool.map(work, [0]))
""",
        tmp_path,
    ).ok()
    assert finished.lines == ["[(((3, -1), 0, (0, 2), 0), 719, True)]"]


def test_forked_children_stay_refused(tmp_path: Path) -> None:
    """Leaving the block in a child restores the child's variables, and neither its driver nor the parent's."""
    finished = program(
        """
with simulated_cuda():
    child = os.fork()
    if child == 0:
        refused(simulated_cuda)
        print(ctypes.CDLL("libcuda.so.1").cuInit(0), "LD_LIBRARY_PATH" in os.environ, flush=True)
    else:
        os.waitpid(child, 0)
        print("parent", *count(), flush=True)
if child == 0:
    print(ctypes.CDLL("libcuda.so.1").cuInit(0), "LD_LIBRARY_PATH" in os.environ)
    refused(simulated_cuda)
    sys.stdout.flush()
    os._exit(0)
""",
        tmp_path,
    ).ok()
    nested, *rest = finished.lines
    assert nested.startswith("DriverUnavailableError [CFG204] simulated_cuda() is already in use by process ")
    assert rest == [
        "3 True",
        "3 False",
        (
            "DriverUnavailableError [CFG204] The simulated driver can't become 'initialized' here: "
            "CUDA_ERROR_NOT_INITIALIZED (3)."
        ),
        "parent 0 1",
    ]


def test_children_forked_after_the_block_are_free(tmp_path: Path) -> None:
    finished = program(
        """
with simulated_cuda(state="active"):
    pass
child = os.fork()
if child == 0:
    with simulated_cuda(devices=2, state="active"):
        print(*count(), active(), flush=True)
    ctypes.CDLL("libcuda.so.1").cuInit(0)
    refused(simulated_cuda)
    sys.stdout.flush()
    os._exit(0)
os.waitpid(child, 0)
print(*count())
""",
        tmp_path,
    ).ok()
    assert finished.lines == [
        "0 2 1",
        "DriverUnavailableError [CFG204] The simulated driver is already up in this process, by other means.",
        "3 -1",
    ]

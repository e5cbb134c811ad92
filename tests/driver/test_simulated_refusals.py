"""simulated_cuda() refuses what can't work, each time with one clear error and nothing changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.driver.kinds import make
from support.driver.simulation import program


def test_refusals(tmp_path: Path) -> None:
    finished = program(
        """
with simulated_cuda():
    refused(simulated_cuda)
    print(*count())
refused(lambda: simulated_cuda(devices=-1))
refused(lambda: simulated_cuda(devices=17))
refused(lambda: simulated_cuda(state="up"))
refused(lambda: simulated_cuda(devices=0))
refused(lambda: simulated_cuda(devices=0, state="loaded"))
os.environ["CUDA_VISIBLE_DEVICES"] = ""
refused(simulated_cuda)
print(*count(), "LD_LIBRARY_PATH" in os.environ)
""",
        tmp_path,
    ).ok()
    assert finished.lines == [
        "DriverUnavailableError [CFG204] simulated_cuda() is already in use; it can't be nested.",
        "0 1",
        "ValueError devices must be from 0 to 16, not -1",
        "ValueError devices must be from 0 to 16, not 17",
        "ValueError state must be one of loaded, initialized, active, not 'up'",
        "ValueError devices=0 means that there is no GPU: cuInit fails, so state can't be 'initialized', only 'loaded'",
        "not refused",
        (
            "DriverUnavailableError [CFG204] The simulated driver can't become 'initialized' here: "
            "CUDA_ERROR_NO_DEVICE (100)."
        ),
        "3 -1 False",
    ]


@pytest.mark.parametrize("major", ["470", "555"])
def test_never_beside_a_real_driver(tmp_path: Path, major: str) -> None:
    """The refusal leaves the real one as it was: free to be unloaded by who loaded it."""
    real = make(major)
    finished = program(
        f"""
import _ctypes
library = ctypes.CDLL({real.path!r})
refused(simulated_cuda)
refused(lambda: simulated_cuda(devices=0, state="loaded"))
print("CUDA_FORK_GUARD_SIM" in os.environ)
_ctypes.dlclose(library._handle)
print("libcuda" in open("/proc/self/maps").read())
""",
        tmp_path,
    ).ok()
    refusal = (
        "DriverUnavailableError [CFG204] A real libcuda.so.1 is loaded in this process; "
        "the simulated driver can't stand beside it."
    )
    assert finished.lines == [refusal, refusal, "False", "False"]


def test_where_there_is_none(tmp_path: Path) -> None:
    finished = program(
        """
import cuda_fork_guard.testing
cuda_fork_guard.testing.__path__ = []
refused(simulated_cuda)
sys.platform = "darwin"
refused(simulated_cuda)
""",
        tmp_path,
    ).ok()
    assert finished.lines == [
        "DriverUnavailableError [CFG204] The simulated driver was not built into this installation.",
        "DriverUnavailableError [CFG204] There is no simulated driver for darwin: it is for Linux only.",
    ]

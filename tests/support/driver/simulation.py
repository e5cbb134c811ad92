"""Child programs around simulated_cuda(), with a few words they share."""

from __future__ import annotations

from pathlib import Path

from support.child import Finished, environment, python

START = """
import ctypes, os, sys
from cuda_fork_guard.testing import driver_folder, simulated_cuda

def count():
    number = ctypes.c_int(-1)
    library = ctypes.CDLL("libcuda.so.1")
    return library.cuDeviceGetCount(ctypes.byref(number)), number.value

def active(device=0):
    flags, found = ctypes.c_uint(), ctypes.c_int(-1)
    ctypes.CDLL("libcuda.so.1").cuDevicePrimaryCtxGetState(device, ctypes.byref(flags), ctypes.byref(found))
    return found.value

def refused(call):
    try:
        with call():
            pass
    except (RuntimeError, ValueError) as error:
        print(type(error).__name__, error)
    else:
        print("not refused")
"""


def program(body: str, tmp_path: Path, **variables: str) -> Finished:
    # A program of its own, as the workers that it spawns import it.
    (tmp_path / "body.py").write_text(START + body)
    return python(
        "import runpy; runpy.run_path('body.py', run_name='__main__')", cwd=tmp_path, env=environment(**variables)
    )

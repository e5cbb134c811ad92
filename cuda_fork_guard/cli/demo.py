"""``demo``: what the guard does, on any machine, in seconds. Each scene is a program of its own."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cuda_fork_guard import guard, policies, testing, waking
from cuda_fork_guard.cli import demo_programs, exits
from cuda_fork_guard.errors import DriverUnavailableError
from cuda_fork_guard.testing import simulation

if TYPE_CHECKING:
    import argparse

SUMMARY = "an unsafe fork refused, a touch reported, workers verified; simulated unless there is a GPU"

_LIMIT = 120  # seconds for one scene: torch alone may take ten to import

# How many real devices the driver on the loader's path has, asked in a process of its own: the answer wakes CUDA.
_COUNT_DEVICES = """
import ctypes
driver, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
simulated = hasattr(driver, "cfg_sim_configure")
print(0 if simulated or driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)) else count.value)
"""


# The caller's policy, warning filters and hook are not the demo's.
_STEERING = (policies.VARIABLE, simulation.SETTINGS, waking.VARIABLE, "PYTHONWARNINGS")


@dataclass(frozen=True)
class Scene:
    title: str
    program: str
    expected: tuple[str, ...]  # what has to be among its words


_SCENES = (
    Scene("block: an unsafe fork is refused", demo_programs.REFUSED, ("[CFG101] fork refused", "train.py:")),
    Scene(
        "watch (the default): silent until a forked child uses CUDA",
        demo_programs.TOUCHED,
        ("child ended with 0", "[CFG102]", "used:", "forked:", "woken:", "child ended with 3"),
    ),
    Scene(
        "workers with a CUDA context of their own",
        demo_programs.WORKERS,
        ("spawn: two workers", "fresh on device 0, inherited: False"),
    ),
)
_LOADER = Scene(
    "a DataLoader forked after CUDA came up",
    demo_programs.LOADER,
    ("watch: 4 items arrived", "block: [CFG101] fork refused", "DataLoader"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    del parser  # nothing to choose: the demo looks for itself


def run(args: argparse.Namespace) -> int:
    del args
    if guard.native is None:
        print(f"demo: {guard.unsupported_reason}", file=sys.stderr)
        return exits.NO_VERDICT
    try:
        environment = _environment()
    except DriverUnavailableError as error:
        print(f"demo: {error}", file=sys.stderr)
        return exits.NO_VERDICT
    failed = [scene.title for scene in _scenes() if not _play(scene, environment)]
    if failed:
        print("demo: not as it should be: " + "; ".join(failed), file=sys.stderr)
        return exits.FOUND
    print("\nEverything went as it should.")
    return exits.CLEAN


def _scenes() -> tuple[Scene, ...]:
    if importlib.util.find_spec("torch") is not None:
        return (*_SCENES[:2], _LOADER, *_SCENES[2:])
    print("torch is not installed here: the scene with a DataLoader is left out.")
    return _SCENES


def _environment() -> dict[str, str]:
    """That of the scenes, which find a driver on the loader's path: the GPU's, or else the simulated one."""
    kept = {name: value for name, value in os.environ.items() if name not in _STEERING}
    devices = _devices(kept)
    if devices:
        print(f"Driver: this machine's own, with {devices} device{'s' * (devices != 1)}: everything below is real.")
        return kept
    folder, former = testing.driver_folder(), kept.get("LD_LIBRARY_PATH")
    print("Driver: SIMULATED, as no GPU can be used here. The forks, processes and messages below are real.")
    return {**kept, "LD_LIBRARY_PATH": f"{folder}:{former}" if former else folder}


def _devices(environment: dict[str, str]) -> int:
    try:
        answer = subprocess.run(
            [sys.executable, "-c", _COUNT_DEVICES], env=environment, capture_output=True, text=True, timeout=_LIMIT
        )
    except subprocess.TimeoutExpired:
        return 0
    return int(answer.stdout) if answer.returncode == 0 else 0


def _play(scene: Scene, environment: dict[str, str]) -> bool:
    print(f"\n== {scene.title}", flush=True)
    with tempfile.TemporaryDirectory(prefix="cuda_fork_guard-") as folder:
        Path(folder, "train.py").write_text(scene.program.lstrip(), encoding="utf-8")
        code, words = _run(folder, environment)
    print("  " + words.rstrip().replace("\n", "\n  "))
    missing = [text for text in scene.expected if text not in words]
    if code or missing:
        print(f"  (not as it should be: exit code {code}, missing: {missing})")
        return False
    return True


def _run(folder: str, environment: dict[str, str]) -> tuple[int, str]:
    """The exit code and all words of train.py. However it ends, nothing that it started stays behind."""
    process = subprocess.Popen(
        [sys.executable, "train.py"],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        words, _ = process.communicate(timeout=_LIMIT)
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)
        words, _ = process.communicate()
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        words += f"(ended by the demo after {_LIMIT} s)\n"
    return process.returncode, words

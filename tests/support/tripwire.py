"""Builds the tripwire's scenarios and the fake driver from source, and runs one in a process of its own."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.child import Finished, run

ROOT = Path(__file__).resolve().parents[2]
NATIVE = ROOT / "tests" / "tripwire" / "native"
CORE = ROOT / "csrc" / "core"
DRIVERS = Path(os.environ.get("CUDA_FORK_GUARD_DRIVERS", ROOT / ".cache" / "drivers"))
MAJORS = ("470", "535", "550", "555")
SKIPPED = 77  # harness.hpp's exit code

_WARNINGS = ("-Wall", "-Wextra", "-Wshadow", "-Werror")
_FLAGS = (f"-I{ROOT / 'csrc'}", f"-I{NATIVE}", "-D_GNU_SOURCE", "-O2", "-g", "-fPIC", "-pthread")
# scripts/sanitize preloads the run-time library into Python, which doesn't make the programs here instrumented.
SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")
_SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined") if SANITIZED else ()
# The sanitizer's allocator is left locked in a child of a process with threads, and it needs mappings of its own.
_NOT_SANITIZED = ("stress", "fork_while_tripping", "fork_while_preparing", "address_space_used_up", "too_many_mappings")
_FAKE = ("-shared", "-fvisibility=hidden", "-Wl,-soname,libcuda.so.1")


@dataclass(frozen=True)
class Programs:
    """What was built, and what it takes to run it (an emulator, for another processor)."""

    probe: Path
    fake: Path
    runner: tuple[str, ...] = ()

    def scenario(self, library: Path, name: str, *arguments: str, limit: float = 60) -> Finished:
        """Runs the scenario; it must end with exit code 0, its last line "ok" and nothing on stderr."""
        if SANITIZED and name in _NOT_SANITIZED:
            pytest.skip("not with AddressSanitizer")
        finished = run([*self.runner, str(self.probe), str(library), name, *arguments], limit=limit)
        if finished.code == SKIPPED:
            pytest.skip(finished.out.strip())
        finished.ok()
        assert finished.lines[-1] == "ok", finished.out
        assert finished.err == "", finished.err
        return finished


def _sources() -> list[Path]:
    own = [path for path in NATIVE.iterdir() if path.suffix in (".cpp", ".S") and not path.name.startswith("fake_")]
    core = [path for path in CORE.iterdir() if path.name.startswith("tripwire") and path.suffix in (".cpp", ".S")]
    return sorted([*own, *core, CORE / "loaded_libraries.cpp", CORE / "safe_output.cpp"])


def _digest(paths: Iterable[Path], *more: str) -> str:
    digest = hashlib.sha256(repr(more).encode())
    for path in sorted(paths):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _compile(command: tuple[str, ...], source: Path, folder: Path) -> str:
    target = folder / f"{source.name}.o"
    language = ["-std=c++17"] if source.suffix == ".cpp" else []
    run([*command, *language, *_FLAGS, *_WARNINGS, "-c", str(source), "-o", str(target)], limit=300).ok()
    return str(target)


def _build(command: tuple[str, ...], folder: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(lambda source: _compile(command, source, folder), _sources()))
    # -rdynamic: the callers' names are looked up at run time.
    run([*command, *_FLAGS, "-rdynamic", *objects, "-o", str(folder / "probe"), "-ldl"], limit=300).ok()
    fake = sorted(str(path) for path in NATIVE.glob("fake_*.*") if path.suffix != ".hpp")
    run([command[0], *_FLAGS, *_FAKE, *fake, "-o", str(folder / "libfake.so")], limit=300).ok()


def build(compiler: str, runner: tuple[str, ...] = ()) -> Programs:
    """Compiles what has changed since the last time (some ten seconds of work), into the git-ignored cache."""
    command = (compiler,) if runner else (compiler, *_SANITIZE)
    headers = [*NATIVE.glob("*.hpp"), *CORE.glob("*.hpp"), *NATIVE.glob("fake_*")]
    key = _digest([*_sources(), *headers, Path(__file__)], *command)
    folder = ROOT / ".cache" / "tripwire-tests" / key
    folder.mkdir(parents=True, exist_ok=True)
    # Several test processes may want it at once.
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            _build(command, folder)
            (folder / "complete").touch()
    return Programs(folder / "probe", folder / "libfake.so", runner)


def system_compiler() -> str:
    found = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if not found:
        pytest.skip("no C++ compiler")
    return found


def real_driver(major: str) -> Path:
    path = DRIVERS / major / "libcuda.so.1"
    if not path.is_file():
        pytest.skip(f"no driver {major} in {DRIVERS}")
    return path


def simulated_driver() -> Path:
    try:
        from cuda_fork_guard.testing import driver_folder
    except ImportError:
        pytest.skip("the package is not installed with its simulated driver")
    return Path(driver_folder()) / "libcuda.so.1"

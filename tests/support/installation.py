"""The package as its users install it: a wheel in an environment of its own, away from the sources."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[2]


# A wheel of these sources that was built already: CI builds one and tests it in several places.
_BUILT = "CFG_TEST_WHEEL"


def build_wheel(folder: Path) -> Path:
    """With the build tools of this environment, if it has them."""
    if os.environ.get(_BUILT):
        return Path(os.environ[_BUILT])
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    if importlib.util.find_spec("scikit_build_core") is not None and importlib.util.find_spec("pybind11") is not None:
        command.append("--no-build-isolation")
    command += ["--config-settings", f"build-dir={folder / 'build'}", "--wheel-dir", str(folder), str(_ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel


def make_environment(folder: Path, *wheels: Path) -> Path:
    """Returns its interpreter. Nothing but the wheels is in it."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=100)
    python = folder / "bin" / "python"
    for wheel in wheels:
        command = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(python),
            "install",
            "--quiet",
            "--no-deps",
            "--no-index",
        ]
        done = subprocess.run([*command, str(wheel)], capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, done.stdout + done.stderr
    return python

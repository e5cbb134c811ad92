"""Which libcuda.so.1 the loader would take, found without loading it."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Mapping

LIBRARY = "libcuda.so.1"

# Where drivers put it outside the loader's cache.
_OTHER_FOLDERS = (
    "/usr/lib/wsl/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
)
# As `ldconfig -p` writes the processor of a 64-bit library.
_CACHE_WORDS = {"x86_64": "x86-64", "aarch64": "AArch64"}


def libcuda_found(root: str = "", environ: Mapping[str, str] = os.environ) -> list[dict[str, object]]:
    """In the order in which the loader would look: the first one is it."""
    paths = [os.path.join(folder, LIBRARY) for folder in environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    paths = [root + path for path in paths]
    if not root:
        paths += cached(_printed_cache())
    paths += [f"{root}{folder}/{LIBRARY}" for folder in _OTHER_FOLDERS]
    found: list[dict[str, object]] = []
    seen: set[str] = set()
    for path in paths:
        real = os.path.realpath(path)
        if real in seen or not os.path.exists(real):
            continue
        seen.add(real)
        found.append({"path": path.removeprefix(root), "version": version_of(real), "stub": "/stubs/" in path})
    return found


def version_of(path: str) -> str | None:
    """The driver's version is in the name of the file behind the link: libcuda.so.550.54.14."""
    match = re.search(r"libcuda\.so\.(\d+\.\d+(?:\.\d+)*)$", path)
    return match[1] if match else None


def cached(printed: str) -> list[str]:
    """The paths of libcuda in what `ldconfig -p` prints, for this processor."""
    word = _CACHE_WORDS.get(platform.machine(), "")
    pattern = re.compile(rf"^\s*{re.escape(LIBRARY)} \(([^)]*)\) => (\S.*)$", re.MULTILINE)
    return [path for kind, path in pattern.findall(printed) if word in kind]


def _printed_cache() -> str:
    for command in ("/sbin/ldconfig", "/usr/sbin/ldconfig", "ldconfig"):
        try:
            done = subprocess.run([command, "-p"], capture_output=True, text=True, timeout=10, check=False)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0:
            return done.stdout
    return ""

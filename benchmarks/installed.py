"""The package as a wheel lays it out: an editable install's finder would be measured with it."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import cuda_fork_guard


@contextmanager
def installed_copy() -> Iterator[Path]:
    """A folder with the package and threadpoolctl, which it is compared with."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        package = Path(cuda_fork_guard.__file__).parent
        shutil.copytree(package, folder / "cuda_fork_guard", ignore=shutil.ignore_patterns("__pycache__"))
        native = importlib.util.find_spec("cuda_fork_guard._native")
        assert native is not None
        assert native.origin is not None
        for library in Path(native.origin).parent.glob("*.so"):
            shutil.copy(library, folder / "cuda_fork_guard")
        threadpoolctl = importlib.util.find_spec("threadpoolctl")
        assert threadpoolctl is not None, "pip install '.[bench]' brings threadpoolctl, which this is compared with"
        assert threadpoolctl.origin is not None
        shutil.copy(threadpoolctl.origin, folder)
        yield folder


def bare_python(folder: Path, code: str) -> list[str]:
    """A bare interpreter, without site-packages, that finds what is in the folder."""
    return [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(folder)!r})\n{code}"]

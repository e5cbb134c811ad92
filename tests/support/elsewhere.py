"""Preludes for child programs: the package where its native module is missing, and on another platform."""

from __future__ import annotations

HIDDEN = """
import sys
class _Hidden:
    def find_spec(self, name, path=None, target=None):
        if name == "cuda_fork_guard._native":
            raise ImportError("hidden by the test")
sys.meta_path.insert(0, _Hidden())
"""


def platform(name: str) -> str:
    """sys.platform is another one's while the package is imported. What the interpreter itself does stays Linux."""
    # Its own modules choose by platform when they are imported: they are to be what this system has.
    # What asks the platform when it is imported, and would look for Windows' own modules.
    return f"import multiprocessing.reduction, shutil\n{HIDDEN}\nsys.platform = {name!r}\n"


PLACES = {"hidden": HIDDEN, "darwin": platform("darwin"), "win32": platform("win32")}

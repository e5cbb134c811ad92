"""Runs a program in a mount namespace of its own, where /dev has character devices named as NVIDIA's.

They are /dev/null's twins: real devices, so that descriptors, forks, links and permissions are the kernel's own.
Nothing outside the namespace sees them.
"""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path

from support import child

_SET_UP = """
set -e
mount -t tmpfs -o mode=755 tmpfs /dev
for node in null nvidiactl nvidia0 nvidia1 nvidia-uvm; do mknod -m 666 /dev/$node c 1 3; done
mkdir -m 755 /dev/nvidia-caps && mknod -m 666 /dev/nvidia-caps/nvidia-cap1 c 1 3
mknod -m 666 /dev/urandom c 1 9
mknod -m 666 /dev/zero c 1 5
mkdir /dev/shm
"""


@functools.cache
def why_not() -> str | None:
    """Why no such namespace can be had here; None if it can."""
    if not sys.platform.startswith("linux"):
        return "needs Linux"
    trial = subprocess.run(["unshare", "--mount", "sh", "-c", _SET_UP], capture_output=True, text=True, timeout=20)
    return None if trial.returncode == 0 else f"no private mount namespace with devices: {trial.stderr.strip()}"


def run(program: Path, *, unshare: tuple[str, ...] = ()) -> child.Finished:
    here = Path(__file__).parent
    return child.run(
        ["unshare", "--mount", *unshare, "sh", "-c", f'{_SET_UP}exec "$0" "$@"', sys.executable, str(program)],
        env=child.environment(PYTHONPATH=str(here)),
    )

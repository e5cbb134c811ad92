"""Child programs in a mount namespace of their own: another /dev, no /proc. Nothing outside of it sees that."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import textwrap

import pytest

from .child import Finished, run

NO_PROC = "umount -l /proc"
# Device nodes as regular files: what counts here is only where a descriptor's link points. The null device itself is
# carried over, since a node can't be made in a user namespace.
DEVICES = (
    "mount -t tmpfs tmpfs /mnt && : >/mnt/null && mount --bind /dev/null /mnt/null && mount -t tmpfs tmpfs /dev "
    "&& : >/dev/null && mount --bind /mnt/null /dev/null && : >/dev/nvidiactl && : >/dev/nvidia-uvm && : >/dev/nvidia0"
)


def _unshare() -> list[str]:
    return ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-r", "-m"]


@functools.cache
def _reason() -> str:
    try:
        done = subprocess.run([*_unshare(), "true"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "util-linux's unshare is not installed"
    return done.stderr.strip() if done.returncode else ""


def python_with(setup: str, code: str, *arguments: str, limit: float = 60) -> Finished:
    """Runs `code` where `setup`, a line of shell, has been done as root of a private mount namespace."""
    if _reason():
        pytest.skip(f"no mount namespace to be had: {_reason()}")
    command = [*_unshare(), "sh", "-ec", f'{setup}; exec "$@"', "sh", sys.executable, "-c", textwrap.dedent(code)]
    return run([*command, *arguments], limit=limit)

"""The kernel's driver, device nodes, MIG and MPS: what the file system shows of them."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping

from cuda_fork_guard.cli.facts import files
from cuda_fork_guard.device_nodes import device_node

_NODE_FOLDERS = ("/dev", "/dev/nvidia-caps", "/dev/nvgpu")
_MPS_DEFAULT = "/tmp/nvidia-mps"


def gpu(root: str = "", environ: Mapping[str, str] = os.environ) -> dict[str, object]:
    return {
        "kernel_driver": kernel_driver(root),
        "models": _models(root),
        "nodes": nodes(root),
        "mig": _mig(root, environ),
        "mps": _mps(root, environ),
    }


def kernel_driver(root: str) -> str | None:
    text = files.first_line(f"{root}/proc/driver/nvidia/version") or ""
    match = re.search(r"\b(\d{3,}\.\d+(?:\.\d+)?)\b", text)
    return match[1] if match else files.first_line(f"{root}/sys/module/nvidia/version")


def _models(root: str) -> list[str]:
    models: list[str] = []
    folder = f"{root}/proc/driver/nvidia/gpus"
    for name in files.names(folder):
        for line in (files.read(f"{folder}/{name}/information") or "").split("\n"):
            key, _, value = line.partition(":")
            if key.strip() == "Model":
                models.append(value.strip())
    return models


def nodes(root: str) -> list[dict[str, object]]:
    """Device nodes, and whether this user may open them. A node proves no GPU: a mere cuInit by root makes one."""
    found: list[dict[str, object]] = []
    for folder in _NODE_FOLDERS:
        for name in files.names(root + folder):
            path = f"{folder}/{name}"
            if device_node(path) is None:
                continue
            try:
                mode = os.stat(root + path).st_mode
            except OSError:
                continue
            if not stat.S_ISDIR(mode):
                found.append(
                    {
                        "path": path,
                        "device": stat.S_ISCHR(mode),
                        "accessible": os.access(root + path, os.R_OK | os.W_OK),
                    }
                )
    return found


def _mig(root: str, environ: Mapping[str, str]) -> list[str]:
    """Instances of split GPUs, as the kernel lists them, and a selection of one in the environment."""
    signs: list[str] = []
    folder = f"{root}/proc/driver/nvidia/capabilities"
    for card in files.names(folder):
        signs += [f"{card}/{name}" for name in files.names(f"{folder}/{card}/mig") if name.startswith("gi")]
    if "MIG-" in environ.get("CUDA_VISIBLE_DEVICES", ""):
        signs.append("CUDA_VISIBLE_DEVICES selects an instance")
    return signs


def _mps(root: str, environ: Mapping[str, str]) -> str | None:
    """The folder of a control daemon's pipes. It stays when the daemon ends, so this is a sign and no proof."""
    folder = environ.get("CUDA_MPS_PIPE_DIRECTORY") or _MPS_DEFAULT
    return folder if os.path.exists(f"{root}{folder}/control") else None

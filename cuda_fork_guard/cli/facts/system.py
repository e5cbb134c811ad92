"""The machine: system, kernel, and what kind of place this is (container, WSL, Jetson)."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping

from cuda_fork_guard.cli.facts import files
from cuda_fork_guard.procfs import container_of, parse_cgroup

# A file or variable that only such a container has; of variables the presence counts, never the value.
_CONTAINER_FILES = (("/.dockerenv", "Docker"), ("/run/.containerenv", "Podman"), ("/run/systemd/container", "systemd"))
_CONTAINER_VARIABLES = (
    ("APPTAINER_CONTAINER", "Apptainer"),
    ("SINGULARITY_CONTAINER", "Singularity"),
    ("KUBERNETES_SERVICE_HOST", "Kubernetes"),
    ("container", "unnamed"),
)


def system(root: str = "", environ: Mapping[str, str] = os.environ) -> dict[str, object]:
    return {
        "system": platform.system(),
        "distribution": _distribution(root),
        "kernel": files.first_line(f"{root}/proc/sys/kernel/osrelease") or platform.release(),
        "machine": platform.machine(),
        "libc": " ".join(platform.libc_ver()).strip() or None,
        "container": _container(root, environ),
        "wsl": is_wsl(root),
        "jetson": _jetson(root),
        "first_pid_namespace": _first_pid_namespace(root),
    }


def _distribution(root: str) -> str | None:
    for line in (files.read(f"{root}/etc/os-release") or "").split("\n"):
        key, _, value = line.partition("=")
        if key == "PRETTY_NAME":
            return value.strip("\"'")
    return None


def _container(root: str, environ: Mapping[str, str]) -> str | None:
    cgroup = files.read(f"{root}/proc/self/cgroup")
    identity = container_of(parse_cgroup((cgroup or "").encode()))
    named = next((kind for path, kind in _CONTAINER_FILES if os.path.exists(root + path)), None)
    named = named or next((kind for variable, kind in _CONTAINER_VARIABLES if variable in environ), None)
    if named is None and identity is None:
        return None
    return " ".join(filter(None, (named or "unnamed", identity)))


def is_wsl(root: str) -> bool:
    release = files.first_line(f"{root}/proc/sys/kernel/osrelease") or ""
    return "microsoft" in release.lower()


def _jetson(root: str) -> str | None:
    model = files.first_line(f"{root}/proc/device-tree/model")
    if model is not None and ("jetson" in model.lower() or "tegra" in model.lower()):
        return model
    return files.first_line(f"{root}/etc/nv_tegra_release")


def _first_pid_namespace(root: str) -> bool | None:
    try:
        return os.readlink(f"{root}/proc/self/ns/pid") == "pid:[4026531836]"
    except OSError:
        return None

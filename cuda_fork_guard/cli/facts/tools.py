"""Who else hooks into CUDA: the injection variable's owner, profilers and debuggers."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from cuda_fork_guard import procfs
from cuda_fork_guard.waking import HOOK
from cuda_fork_guard.waking import VARIABLE as INJECTION

# Variables that a tool sets for what it starts; their presence counts, the value is nobody's business.
_VARIABLES = (
    ("NSYS_PROFILING_SESSION_ID", "Nsight Systems"),
    ("QUADD_INJECTION_PROXY", "Nsight Systems"),
    ("NV_NSIGHT_INJECTION_PORT_BASE", "Nsight Compute"),
    ("NV_TPS_LAUNCH_TOKEN", "Nsight Compute"),
    ("NV_COMPUTE_PROFILER_PERFWORKS_DIR", "Nsight Compute"),
    ("NV_SANITIZER_INJECTION_PORT_BASE", "Compute Sanitizer"),
    ("NVTX_INJECTION64_PATH", "an NVTX tool"),
    ("KINETO_USE_DAEMON", "Kineto (dynolog)"),
)
# File names of their libraries, in the injection variable, in LD_PRELOAD, or mapped into this process.
_LIBRARIES = (
    (re.compile(r"libcupti"), "CUPTI"),
    (re.compile(r"libToolsInjection"), "Nsight Systems"),
    (re.compile(r"libcuda-injection|ncu|TreeLauncher"), "Nsight Compute"),
    (re.compile(r"libsanitizer-collection|libInterceptorInjectionTarget"), "Compute Sanitizer"),
    (re.compile(r"cudagdb|libcudadebugger"), "cuda-gdb"),
)
# Commands that may be among this process's parents.
_COMMANDS = {
    "nsys": "Nsight Systems",
    "nsys-launcher": "Nsight Systems",
    "ncu": "Nsight Compute",
    "nv-nsight-cu-cl": "Nsight Compute",
    "compute-sanitiz": "Compute Sanitizer",
    "cuda-gdb": "cuda-gdb",
    "nvprof": "nvprof",
}
_MOST_PARENTS = 64


def tools(root: str = "", environ: Mapping[str, str] = os.environ, pid: str = "self") -> dict[str, object]:
    return {"injection": injection(environ), "others": _others(root, environ, pid)}


def injection(environ: Mapping[str, str]) -> dict[str, object]:
    """`owner`: nobody, us, off ("none", which keeps every hook away), or other."""
    value = environ.get(INJECTION, "")
    if not value:
        owner = "nobody"
    elif value.lower() == "none":
        owner = "off"
    else:
        owner = "us" if os.path.basename(value) == HOOK else "other"
    missing = owner in ("us", "other") and not os.path.isfile(value)
    return {"owner": owner, "path": procfs.text(os.fsencode(value)) or None, "missing": missing}


def _others(root: str, environ: Mapping[str, str], pid: str) -> list[dict[str, str]]:
    found = [(tool, f"{name} is set") for name, tool in _VARIABLES if environ.get(name)]
    for name in (INJECTION, "LD_PRELOAD"):
        for path in re.split(r"[: ]", environ.get(name, "")):
            found += [(tool, f"in {name}") for tool in _tools_of(path)]
    for path in _mapped(root, pid):
        found += [(tool, f"{os.path.basename(path)} is loaded here") for tool in _tools_of(path)]
    for parent, comm in _parents(root, pid):
        if comm in _COMMANDS:
            found.append((_COMMANDS[comm], f"its process {parent} started this one"))
    return [{"tool": tool, "sign": sign} for tool, sign in dict.fromkeys(found)]


def _tools_of(path: str) -> list[str]:
    name = os.path.basename(path)
    return [tool for pattern, tool in _LIBRARIES if pattern.search(name)]


def _mapped(root: str, pid: str) -> list[str]:
    try:
        with open(f"{root}/proc/{pid}/maps", encoding="utf-8", errors="replace") as file:
            return sorted({line.split(None, 5)[5].strip() for line in file if line.count(" ") >= 5 and "/" in line})
    except (OSError, IndexError):
        return []


def _parents(root: str, pid: str) -> list[tuple[int, str]]:
    parents: list[tuple[int, str]] = []
    for _ in range(_MOST_PARENTS):
        try:
            with open(f"{root}/proc/{pid}/stat", "rb") as file:
                parent = procfs.parse_stat(file.read(procfs.STAT_LIMIT)).ppid
            with open(f"{root}/proc/{parent}/stat", "rb") as file:
                comm = procfs.parse_stat(file.read(procfs.STAT_LIMIT)).comm
        except (OSError, ValueError):
            break
        parents.append((parent, comm))
        pid = str(parent)
    return parents

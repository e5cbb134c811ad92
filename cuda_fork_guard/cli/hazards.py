"""What in the facts will break CUDA, fork or the guard: one table, each row with its code and what to do.

A row's function gets the facts as `doctor` prints them and says what it found, or nothing. A start method that is
merely old, or a machine without a GPU, is none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from cuda_fork_guard import policies

Facts = dict[str, Any]

# The oldest driver that a CUDA release runs on (CUDA's release notes, "minor version compatibility").
_OLDEST_DRIVER = {11: 450, 12: 525, 13: 580}


class Rule(NamedTuple):
    code: str
    find: Callable[[Facts], str | None]
    advice: str


def hazards(facts: Facts) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    for rule in RULES:
        what = rule.find(facts)
        if what is not None:
            found.append({"code": rule.code, "what": what, "advice": rule.advice})
    return found


def _inherited(facts: Facts) -> str | None:
    if facts["status"]["inherited"]:
        return "this process was forked from one in which CUDA was up: CUDA can't work here"
    return None


def _unsafe_default(facts: Facts) -> str | None:
    if facts["status"]["fork_is_safe"] is not False:
        return None
    forking = [
        name
        for name in ("multiprocessing", "torch.multiprocessing", "multiprocess")
        if (facts["start_methods"][name] or {}).get("default") == "fork"
    ]
    return f"CUDA is up in this process, and {', '.join(forking)} would fork it" if forking else None


def _unknown_policy(facts: Facts) -> str | None:
    value = facts["environment"].get(policies.VARIABLE, "")
    if value in ("", "off", "watch", "warn", "block"):
        return None
    return f"CUDA_FORK_GUARD={value} is not a policy: processes watch instead"


def _variable_without_line(facts: Facts) -> str | None:
    line = facts["python"]["start_up_line"]
    if line["active"] or not facts["environment"].get(policies.VARIABLE):
        return None
    return f"CUDA_FORK_GUARD is set, but only programs that import the guard are guarded: {line['reason']}"


def _no_native_module(facts: Facts) -> str | None:
    if facts["platform"]["system"] != "Linux" or facts["status"]["supported"]:
        return None
    return f"the guard does nothing here: {'; '.join(facts['status']['reasons'])}"


def _forks_unseen(facts: Facts) -> str | None:
    reasons = [reason for reason in facts["status"]["reasons"] if reason.startswith("forks: ")]
    return "; ".join(reasons) or None


def _injection_taken(facts: Facts) -> str | None:
    injection = facts["tools"]["injection"]
    if injection["owner"] != "other":
        return None
    return f"CUDA_INJECTION64_PATH is {injection['path']}: who wakes CUDA will not be known"


def _injection_missing(facts: Facts) -> str | None:
    injection = facts["tools"]["injection"]
    if not injection["missing"]:
        return None
    return f"CUDA_INJECTION64_PATH names {injection['path']}, which is not there: nothing hears of cuInit"


def _stub(facts: Facts) -> str | None:
    found = facts["driver"]["found"]
    if found and found[0]["stub"]:
        return f"the loader finds {found[0]['path']} first, a stub for linking: every CUDA call fails with code 34"
    return None


def _mismatch(facts: Facts) -> str | None:
    kernel, found = facts["driver"]["kernel_driver"], facts["driver"]["found"]
    if not kernel or not found or not found[0]["version"]:
        return None
    library = found[0]["version"]
    # A newer library in a "compat" folder is NVIDIA's way to run a newer CUDA on an older driver.
    if library == kernel or "/compat" in found[0]["path"]:
        return None
    return f"libcuda is {library} ({found[0]['path']}), the kernel's driver {kernel}: cuInit fails with code 803"


def _driver_too_old(facts: Facts) -> str | None:
    torch, kernel = facts["torch"], facts["driver"]["kernel_driver"]
    if not torch or not torch["cuda"] or not kernel:
        return None
    oldest = _OLDEST_DRIVER.get(_major(torch["cuda"]))
    if oldest is None or _major(kernel) >= oldest:
        return None
    return f"torch {torch['version']} is built for CUDA {torch['cuda']}, which needs driver {oldest}; this is {kernel}"


def _major(version: str) -> int:
    digits = version.partition(".")[0]
    return int(digits) if digits.isdigit() else 0


def _nodes_closed(facts: Facts) -> str | None:
    closed = [node["path"] for node in facts["driver"]["nodes"] if not node["accessible"]]
    return f"this user may not open {', '.join(closed)}" if closed else None


def _no_uvm(facts: Facts) -> str | None:
    paths = {node["path"] for node in facts["driver"]["nodes"]}
    if not facts["driver"]["kernel_driver"] or "/dev/nvidia0" not in paths or "/dev/nvidia-uvm" in paths:
        return None
    return "/dev/nvidia-uvm is missing: cuInit fails, or forks nvidia-modprobe many times to make it"


_FRESH = (
    "start workers with cuda_fork_guard.get_context(): multiprocessing_context= of a DataLoader, mp_context= of pools"
)

RULES = (
    Rule("CFG501", _inherited, f"end this process; {_FRESH}"),
    Rule("CFG502", _unsafe_default, f"{_FRESH}; CPU-only forked workers do no harm"),
    Rule("CFG503", _unknown_policy, "set it to off, watch, warn or block, or unset it"),
    Rule("CFG504", _variable_without_line, "install the package into this interpreter's own site-packages, without -S"),
    Rule(
        "CFG505", _no_native_module, "reinstall the package for this interpreter; on Linux it needs its native module"
    ),
    Rule("CFG506", _forks_unseen, "import cuda_fork_guard before whatever adds audit hooks"),
    Rule("CFG507", _injection_taken, "run without the profiler to learn who wakes CUDA; all the rest works beside it"),
    Rule("CFG508", _injection_missing, "unset CUDA_INJECTION64_PATH, or correct it"),
    Rule("CFG509", _stub, "take the toolkit's stubs folder out of LD_LIBRARY_PATH: it is for linking only"),
    Rule(
        "CFG510",
        _mismatch,
        "install libcuda of the kernel's driver; in a container, mount the host's; after an update, reboot",
    ),
    Rule("CFG511", _driver_too_old, "update the driver, or install a torch built for an older CUDA"),
    Rule(
        "CFG512",
        _nodes_closed,
        "give this user access to the devices (group video or render, or the container's --gpus)",
    ),
    Rule("CFG513", _no_uvm, "run nvidia-modprobe -u as root once, or pass the device into the container"),
)

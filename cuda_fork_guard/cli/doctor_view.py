"""The doctor's report for people: one screen, each fact on a line, hazards last."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Report = dict[str, Any]

_LABEL = 17


def as_text(report: Report) -> list[str]:
    lines = [f"cuda_fork_guard {report['guard']['version']}  ({report['guard']['path']})"]
    for section in (_place, _start_methods, _torch, _driver, _tools, _state, _variables):
        lines += [f"  {label + ':':{_LABEL}} {value}" for label, value in section(report)]
    lines.append("")
    if report["hazards"]:
        for hazard in report["hazards"]:
            lines += [f"{hazard['code']}: {hazard['what']}", f"  do: {hazard['advice']}"]
    else:
        lines.append("no hazards found")
    return lines


def _place(report: Report) -> Iterator[tuple[str, str]]:
    place, python = report["platform"], report["python"]
    yield (
        "system",
        _join(place["distribution"], f"{place['system']} {place['kernel']}", place["machine"], place["libc"]),
    )
    kinds = (
        ("container", place["container"] or (place["first_pid_namespace"] is False and "a PID namespace of its own")),
        ("WSL", place["wsl"] and "yes"),
        ("Jetson", place["jetson"]),
    )
    for label, value in kinds:
        if value:
            yield label, str(value)
    build = ("debug build" if python["debug_build"] else "", "free-threaded" if python["free_threaded"] else "")
    flags = ", ".join(python["flags"])
    yield "Python", _join(f"{python['implementation']} {python['version']}", *build, flags, python["executable"])
    line = python["start_up_line"]
    yield "start-up line", "installed: CUDA_FORK_GUARD alone guards" if line["active"] else f"none: {line['reason']}"


def _start_methods(report: Report) -> Iterator[tuple[str, str]]:
    facts = report["start_methods"]
    yield "start methods", ", ".join(facts["available"])
    for library in ("multiprocessing", "torch.multiprocessing", "multiprocess", "joblib"):
        answer = facts[library]
        if answer is None:
            continue
        words = f"{answer['default'] or 'unknown'} ({'fixed' if answer['fixed'] else 'default, not fixed'})"
        yield f"  {library.replace('torch.multiprocessing', 'torch.mp')}", _join(words, answer.get("reason"))


def _torch(report: Report) -> Iterator[tuple[str, str]]:
    torch = report["torch"]
    if torch is None:
        yield "torch", "not installed"
        return
    built = f"built for CUDA {torch['cuda']}" if torch["cuda"] else "a build without CUDA"
    yield (
        "torch",
        _join(torch["version"] or "version unknown", f"built for ROCm {torch['hip']}" if torch["hip"] else built),
    )


def _driver(report: Report) -> Iterator[tuple[str, str]]:
    driver = report["driver"]
    yield "kernel driver", _join(driver["kernel_driver"] or "not loaded", *driver["models"])
    first, *others = driver["found"] or [None]
    yield (
        "libcuda found",
        _library(first) if first else f"none ({'loaded' if report['status']['library'] else 'not loaded'})",
    )
    for other in others:
        yield "  behind it", _library(other)
    nodes = [node["path"] + ("" if node["accessible"] else " (no access)") for node in driver["nodes"]]
    yield "device nodes", " ".join(nodes) or "none"
    if driver["mig"]:
        yield "MIG", ", ".join(driver["mig"])
    if driver["mps"]:
        yield "MPS", driver["mps"]


def _library(found: dict[str, Any]) -> str:
    return _join(found["path"], found["version"], "a stub" if found["stub"] else "")


def _tools(report: Report) -> Iterator[tuple[str, str]]:
    injection = report["tools"]["injection"]
    words = {"nobody": "free", "us": "this guard's", "off": "switched off (none)", "other": str(injection["path"])}
    yield "injection hook", words[injection["owner"]]
    for other in report["tools"]["others"]:
        yield "tool", f"{other['tool']} ({other['sign']})"


def _state(report: Report) -> Iterator[tuple[str, str]]:
    status = report["status"]
    yield "policy", status["policy"]
    yield (
        "CUDA here",
        _join(f"driver {status['driver'] or 'unknown'}", status["library"], status["simulated"] and "simulated"),
    )
    safe = {True: "yes", False: "no", None: "unknown"}[status["fork_is_safe"]]
    yield "fork is safe", safe
    for reason in status["reasons"]:
        yield "  because", reason


def _variables(report: Report) -> Iterator[tuple[str, str]]:
    for name, value in report["environment"].items():
        yield "variable", f"{name}={value}"


def _join(*parts: object) -> str:
    return ", ".join(str(part) for part in parts if part)

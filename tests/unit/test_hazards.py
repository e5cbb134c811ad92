"""Hazards: which facts make one, and which look like one and are none."""

from __future__ import annotations

import copy
import re
from pathlib import Path

import pytest

from cuda_fork_guard.cli.doctor import unknowns
from cuda_fork_guard.cli.hazards import RULES, hazards

FORK = {"default": "fork", "fixed": False}
SOUND = {
    "platform": {"system": "Linux", "first_pid_namespace": True},
    "python": {"start_up_line": {"active": True, "reason": None}},
    "start_methods": {"multiprocessing": FORK, "torch.multiprocessing": FORK, "multiprocess": None},
    "torch": {"version": "2.9.1+cu128", "cuda": "12.8"},
    "driver": {
        "kernel_driver": "550.54.14",
        "found": [{"path": "/usr/lib/x86_64-linux-gnu/libcuda.so.1", "version": "550.54.14", "stub": False}],
        "nodes": [{"path": path, "accessible": True} for path in ("/dev/nvidia0", "/dev/nvidia-uvm")],
    },
    "tools": {"injection": {"owner": "us", "path": "/x/cuda_fork_guard_hook.so", "missing": False}, "others": []},
    "environment": {},
    "status": {"supported": True, "inherited": False, "driver": "absent", "fork_is_safe": True, "reasons": []},
}


def facts(**changes: object) -> dict:
    """SOUND with the value at each path, its steps joined by two underscores, replaced."""
    changed = copy.deepcopy(SOUND)
    for path, value in changes.items():
        *steps, last = path.split("__")
        at = changed
        for step in steps:
            at = at[step]
        at[last] = value
    return changed


def codes(**changes: object) -> list[str]:
    return [hazard["code"] for hazard in hazards(facts(**changes))]


def library(path: str, version: str | None = None, stub: bool = False) -> list[dict]:
    return [{"path": path, "version": version, "stub": stub}]


HAZARDS = [
    ({"status__inherited": True}, "CFG501"),
    ({"status__fork_is_safe": False}, "CFG502"),
    ({"status__fork_is_safe": False, "start_methods__multiprocess": FORK}, "CFG502"),
    ({"environment": {"CUDA_FORK_GUARD": "loud"}}, "CFG503"),
    (
        {"environment": {"CUDA_FORK_GUARD": "block"}, "python__start_up_line": {"active": False, "reason": "-S"}},
        "CFG504",
    ),
    ({"status__supported": False, "status__reasons": ["the native module can't be loaded"]}, "CFG505"),
    ({"status__reasons": ["forks: Python's forks aren't seen"]}, "CFG506"),
    ({"tools__injection": {"owner": "other", "path": "/opt/x.so", "missing": False}}, "CFG507"),
    ({"tools__injection": {"owner": "us", "path": "/old/hook.so", "missing": True}}, "CFG508"),
    ({"driver__found": library("/opt/cuda/lib64/stubs/libcuda.so.1", None, True)}, "CFG509"),
    ({"driver__found": library("/usr/lib/libcuda.so.1", "535.261.03")}, "CFG510"),
    ({"torch__cuda": "13.0"}, "CFG511"),
    ({"driver__nodes": [{"path": "/dev/nvidiactl", "accessible": False}]}, "CFG512"),
    ({"driver__nodes": [{"path": "/dev/nvidia0", "accessible": True}]}, "CFG513"),
]


@pytest.mark.parametrize(("changes", "code"), HAZARDS)
def test_hazard(changes, code):
    assert codes(**changes) == [code]


HARMLESS = [
    {},
    {"torch": None},
    {"torch__cuda": None},
    {"torch__cuda": "11.8"},
    {"torch__cuda": "99.1"},
    {"environment": {"CUDA_FORK_GUARD": "block"}},
    {"environment": {"CUDA_FORK_GUARD": ""}},
    {"python__start_up_line": {"active": False, "reason": "-S"}},
    {"driver__kernel_driver": None, "driver__found": [], "driver__nodes": []},
    # a mere cuInit by root leaves the control node behind
    {"driver__kernel_driver": None, "driver__nodes": [{"path": "/dev/nvidiactl", "accessible": True}]},
    {"driver__found": library("/usr/local/cuda/compat/libcuda.so.1", "570.86.10")},
    {"driver__found": library("/usr/lib/wsl/lib/libcuda.so.1")},
    {"tools__injection": {"owner": "off", "path": "none", "missing": False}},
    {"tools__injection": {"owner": "nobody", "path": None, "missing": False}},
    {"status__driver": "initialized", "status__fork_is_safe": None},
    # CUDA is up, and every default starts fresh processes
    {
        "status__fork_is_safe": False,
        "start_methods": {name: {"default": "spawn"} for name in SOUND["start_methods"]},
    },
    {"platform__system": "Darwin", "status__supported": False},
]


@pytest.mark.parametrize("changes", HARMLESS)
def test_what_is_no_hazard(changes):
    assert codes(**changes) == []


def test_each_code_stands_for_one_rule_and_is_tried_here():
    every = [rule.code for rule in RULES]
    assert len(set(every)) == len(every) and all(re.fullmatch(r"CFG5\d\d", code) for code in every)
    assert {code for _, code in HAZARDS} == set(every)
    assert all(rule.advice and "\n" not in rule.advice for rule in RULES)


@pytest.mark.parametrize(
    ("changes", "question"),
    [
        ({"status__driver": None, "status__supported": False, "platform__system": "Darwin"}, "the driver's state"),
        ({"status__inherited": None}, "whether CUDA was inherited"),
        ({"platform__first_pid_namespace": None}, "/proc is not mounted"),
    ],
)
def test_what_is_not_known_is_said(changes, question):
    (reason,) = unknowns(facts(**changes))
    assert question in reason


def test_everything_known():
    assert unknowns(facts()) == []


def test_each_code_is_documented():
    page = (Path(__file__).parents[2] / "docs" / "doctor.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| (CFG5\d\d) \|", page, re.MULTILINE) == [rule.code for rule in RULES]

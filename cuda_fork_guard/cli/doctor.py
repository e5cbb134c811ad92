"""`doctor`: the whole picture for a bug report. It looks, wakes nothing, fixes nothing and shows no secret."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

import cuda_fork_guard
from cuda_fork_guard.cli import exits
from cuda_fork_guard.cli.doctor_view import as_text
from cuda_fork_guard.cli.facts.environment import environment
from cuda_fork_guard.cli.facts.gpu import gpu
from cuda_fork_guard.cli.facts.interpreter import interpreter
from cuda_fork_guard.cli.facts.loader_path import libcuda_found
from cuda_fork_guard.cli.facts.start_methods import start_methods
from cuda_fork_guard.cli.facts.system import system
from cuda_fork_guard.cli.facts.tools import tools
from cuda_fork_guard.cli.facts.torch_build import torch_build
from cuda_fork_guard.cli.hazards import hazards

SUMMARY = "platform, Python, start methods, torch, driver, policy and hazards, for a bug report"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="for a program to read")


def run(args: argparse.Namespace) -> int:
    report = diagnose()
    if args.json:
        print(json.dumps(report, indent=2))
    else:
        print("\n".join(as_text(report)))
    for reason in report["reasons"]:
        print(f"cuda-fork-guard doctor: not everything is known: {reason}", file=sys.stderr)
    return exits.verdict(found=bool(report["hazards"]), complete=report["complete"])


def diagnose(environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Everything as plain JSON; of this very process too, wherever it is called."""
    environ = os.environ if environ is None else environ
    report: dict[str, Any] = {
        "schema": 1,
        "guard": {"version": cuda_fork_guard.__version__, "path": os.path.dirname(cuda_fork_guard.__file__)},
        "platform": system("", environ),
        "python": interpreter(),
        "start_methods": start_methods(environ),
        "torch": torch_build(),
        "driver": {**gpu("", environ), "found": libcuda_found("", environ)},
        "tools": tools("", environ),
        "environment": environment(environ),
        "status": cuda_fork_guard.status().as_dict(),
    }
    report["hazards"] = hazards(report)
    report["reasons"] = unknowns(report)
    report["complete"] = not report["reasons"]
    return report


def unknowns(report: dict[str, Any]) -> list[str]:
    """What the verdict would need and could not be had."""
    status = report["status"]
    reasons: list[str] = []
    for question, field in _QUESTIONS:
        if field(status):
            reasons.append(f"{question}: {'; '.join(status['reasons']) or 'no reason given'}")
    if report["platform"]["system"] == "Linux" and report["platform"]["first_pid_namespace"] is None:
        reasons.append("/proc is not mounted: devices, parents and the kernel's driver can't be looked at")
    return reasons


_QUESTIONS: tuple[tuple[str, Callable[[dict[str, Any]], bool]], ...] = (
    ("the driver's state", lambda status: status["driver"] is None),
    ("whether CUDA was inherited", lambda status: status["supported"] and status["inherited"] is None),
)

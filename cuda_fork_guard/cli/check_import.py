"""``check-import``: does importing a module call ``cuInit``, and on which line? Each in a fresh process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from cuda_fork_guard.cli import driver_choice

if TYPE_CHECKING:
    import argparse

SUMMARY = "does importing a module wake CUDA? Each module is imported in a fresh process"

FOUND_NOTHING, FOUND, NO_VERDICT = 0, 1, 3
WORDS = {FOUND_NOTHING: "clean", FOUND: "calls cuInit", NO_VERDICT: "no verdict"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("modules", nargs="+", metavar="MODULE", help="a module, as in an import statement")
    parser.add_argument(
        "--driver",
        choices=driver_choice.CHOICES,
        default="auto",
        help="the libcuda that a call would reach: the system's, the simulated one, or (auto) the system's if it has one",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument(
        "--timeout", type=_seconds, default=300.0, metavar="SECONDS", help="limit for one import (default 300)"
    )


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise ValueError(text)
    return value


def run(args: argparse.Namespace) -> int:
    bad = [name for name in args.modules if not all(part.isidentifier() for part in name.split("."))]
    if bad:
        print(f"check-import: {bad[0]!r} is not a module's name: write it as in an import statement", file=sys.stderr)
        return 2
    driver = driver_choice.choose(args.driver)
    if driver.problem:
        print(f"check-import: {driver.problem}", file=sys.stderr)
        if args.json:
            print(json.dumps({"schema": 1, "driver": None, "reason": driver.problem, "modules": []}, indent=2))
        return NO_VERDICT
    modules = list(dict.fromkeys(args.modules))
    answers = _ask_all(modules, driver, args.timeout)
    for answer in answers:
        answer["verdict"] = WORDS[_verdict(answer)]
    if args.json:
        print(json.dumps({"schema": 1, "driver": driver.name, "modules": answers}, indent=2))
    else:
        print(f"driver: {driver.name} ({driver.detail})")
        for answer in answers:
            print(_line(answer))
    for answer in answers:
        if _verdict(answer) == NO_VERDICT:
            print(f"check-import: no verdict on {answer['module']}: {_why(answer)}", file=sys.stderr)
    verdicts = {_verdict(answer) for answer in answers}
    return next(code for code in (FOUND, NO_VERDICT, FOUND_NOTHING) if code in verdicts)


def _ask_all(modules: list[str], driver: driver_choice.Driver, limit: float) -> list[dict[str, Any]]:
    if len(modules) == 1:
        return [_ask(modules[0], driver, limit)]
    from concurrent.futures import ThreadPoolExecutor, as_completed

    answers: dict[str, dict[str, Any]] = {}
    # Threads that wait: the work is done in the processes.
    with ThreadPoolExecutor(max_workers=min(len(modules), os.cpu_count() or 1)) as pool:
        asked = {pool.submit(_ask, module, driver, limit): module for module in modules}
        for number, future in enumerate(as_completed(asked), 1):
            answers[asked[future]] = future.result()
            _progress(number, len(modules))
    return [answers[module] for module in modules]


def _progress(done: int, of: int) -> None:
    if of > 1 and sys.stderr.isatty():
        end = "\n" if done == of else ""
        print(f"\rimported {done} of {of}", end=end, file=sys.stderr, flush=True)


def _ask(module: str, driver: driver_choice.Driver, limit: float) -> dict[str, Any]:
    read, write = os.pipe()
    with os.fdopen(read, "rb") as answers:
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", "cuda_fork_guard.import_probe", str(write), module],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=(write,),
                env=driver.environment(),
                start_new_session=True,  # what the module starts is ended with it
            )
        finally:
            os.close(write)
        timed_out = False
        try:
            _out, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            timed_out = True
            os.killpg(process.pid, signal.SIGKILL)
            _out, errors = process.communicate()
        os.set_blocking(read, False)  # a process the module left behind may hold the other end open
        text = answers.read() or b""
    try:
        answer: dict[str, Any] = json.loads(text)
    except ValueError:
        last = errors.decode(errors="replace").strip().splitlines()[-1:]
        answer = {
            "module": module,
            "called": None,
            "reason": "",
            "error": _ending(process.returncode, timed_out, limit),
        }
        if last:
            answer["error"] += f": {last[0]}"
    return answer


def _ending(code: int, timed_out: bool, limit: float) -> str:
    if timed_out:
        return f"not imported within {limit:g} s"
    if code < 0:
        return f"the process was ended by signal {-code} ({signal.Signals(-code).name})"
    return f"the process ended with exit code {code} before the import was over"


def _verdict(answer: dict[str, Any]) -> int:
    if answer["called"]:
        return FOUND
    if answer["called"] is None or answer["error"] or answer["reason"]:
        return NO_VERDICT
    return FOUND_NOTHING


def _why(answer: dict[str, Any]) -> str:
    return str(answer["error"] or answer["reason"])


def _line(answer: dict[str, Any]) -> str:
    line = f"{answer['module']}: {answer['verdict']}"
    if answer["called"]:
        line += f"\n  woken:   {answer['woken']}"
        if answer["chain"]:
            line += f"\n  chain:   {answer['chain']}"
    return line

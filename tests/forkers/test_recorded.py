"""What the guard makes of stacks that were recorded."""

from __future__ import annotations

import os
import re

import pytest
from support.frames import Call, at_the_fork, user

from cuda_fork_guard import fork_site
from forkers.recorded import RECORDED, Recorded

STDLIB = os.path.dirname(os.__file__)


def calls(recorded: Recorded) -> list[Call]:
    found = [user()] if recorded.user else []
    for line in recorded.stack.split("\n"):
        if line.strip():
            match = re.fullmatch(r"(\S+)\.py:\d+ (\w+)", line.strip())
            assert match is not None, line
            file, function = match.groups()
            module = file.removesuffix("/__init__").replace("/", ".")
            standard = file.startswith("multiprocessing/")
            found.append(Call(module, function, f"{STDLIB}/{file}.py" if standard else None))
    return found


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda recorded: f"{recorded.package}-{recorded.version}")
def test_recorded_stack(recorded: Recorded) -> None:
    stack = calls(recorded)
    site = at_the_fork(stack, fork_site.read)
    assert site.exec is (recorded.name == "")
    if recorded.name:
        assert site.forker.name == recorded.name
        assert recorded.advice in site.forker.advice
    if recorded.user:
        assert site.file == "/home/me/train.py"
    else:
        innermost = [call for call in stack if "site-packages" in call.path()][-1]
        assert (site.file, site.function) == (innermost.path(), innermost.function)


@pytest.mark.parametrize(
    "recorded", [r for r in RECORDED if r.name], ids=lambda recorded: f"{recorded.package}-{recorded.version}"
)
def test_no_start_method_is_advised_to_who_calls_os_fork(recorded: Recorded) -> None:
    stack = calls(recorded)
    site = at_the_fork(stack, fork_site.read)
    if stack[-1].module != "multiprocessing.popen_fork":
        assert "spawn method" not in site.forker.advice and "get_context" not in site.forker.advice

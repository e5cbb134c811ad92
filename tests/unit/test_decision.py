"""What a policy asks for at one fork: every combination, as a table."""

from __future__ import annotations

import itertools

import pytest
from support.tables import site

from cuda_fork_guard.decision import (
    PASS,
    RECORD,
    REFUSE,
    REPORT,
    USE_ALLOWED,
    USE_EXEC,
    USE_FORKSERVER,
    USE_QUIET,
    USE_UNKNOWN,
    WARNING,
    decide,
)
from cuda_fork_guard.policies import BLOCK, OFF, WARN, WATCH


@pytest.mark.parametrize(
    ("policy", "unsafe", "action"),
    [
        (OFF, True, PASS),
        (OFF, False, PASS),
        (WATCH, True, RECORD),
        (WATCH, False, RECORD),
        (WARN, True, WARNING),
        (WARN, False, RECORD),
        (BLOCK, True, REFUSE),
        (BLOCK, False, RECORD),
    ],
)
def test_an_ordinary_fork(policy: int, unsafe: bool, action: str) -> None:
    decision = decide(policy, unsafe, False, site())
    assert (decision.action, decision.use) == (action, USE_UNKNOWN)


@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize("unsafe", [False, True])
@pytest.mark.parametrize("policy", [OFF, WATCH, WARN, BLOCK])
def test_fork_and_exec_is_not_even_recorded(policy: int, unsafe: bool, allowed: bool) -> None:
    decision = decide(
        policy,
        unsafe,
        allowed,
        site(exec=True, quiet=True, supervisor=True, forkserver=True),
    )
    assert (decision.action, decision.use) == (PASS, USE_EXEC)


@pytest.mark.parametrize("unsafe", [False, True])
@pytest.mark.parametrize("policy", [WATCH, WARN, BLOCK])
def test_an_allowed_fork_is_recorded_as_such(policy: int, unsafe: bool) -> None:
    decision = decide(policy, unsafe, True, site(quiet=True, supervisor=True, forkserver=True))
    assert (decision.action, decision.use) == (RECORD, USE_ALLOWED)


@pytest.mark.parametrize("unsafe", [False, True])
@pytest.mark.parametrize("policy", [WATCH, WARN, BLOCK])
def test_a_compile_worker_is_recorded_and_stays_quiet(policy: int, unsafe: bool) -> None:
    decision = decide(policy, unsafe, False, site(quiet=True))
    assert (decision.action, decision.use) == (RECORD, USE_QUIET)


@pytest.mark.parametrize(
    ("where", "use"),
    [({"supervisor": True}, USE_UNKNOWN), ({"forkserver": True}, USE_FORKSERVER)],
)
@pytest.mark.parametrize(
    ("policy", "unsafe", "action"),
    [
        (WATCH, True, RECORD),
        (WARN, True, REPORT),
        (BLOCK, True, REPORT),
        (WARN, False, RECORD),
        (BLOCK, False, RECORD),
    ],
)
def test_no_exception_where_nobody_could_catch_it(
    policy: int, unsafe: bool, action: str, where: dict[str, bool], use: int
) -> None:
    decision = decide(policy, unsafe, False, site(**where))
    assert (decision.action, decision.use) == (action, use)


def test_only_block_refuses_and_only_an_unsafe_fork_is_spoken_of() -> None:
    flags = ("exec", "quiet", "supervisor", "forkserver")
    for policy, unsafe, allowed in itertools.product((OFF, WATCH, WARN, BLOCK), (False, True), (False, True)):
        for values in itertools.product((False, True), repeat=len(flags)):
            action = decide(policy, unsafe, allowed, site(**dict(zip(flags, values, strict=True)))).action
            if action == REFUSE:
                assert policy == BLOCK
            if action in (REFUSE, WARNING, REPORT):
                assert unsafe and not allowed and policy in (WARN, BLOCK)

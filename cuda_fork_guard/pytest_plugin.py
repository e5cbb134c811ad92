"""``pytest --cuda-fork-guard=warn|block``: tests that fork unsafely or whose children use CUDA fail, and so does a session
whose collection woke CUDA. Loaded by the entry module only when the option is given."""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import pytest

from . import announce, event_log, guard, waking
from .errors import UnsafeForkError
from .pytest_ledger import Ledger, Told

_NAME = "cuda_fork_guard_checks"
_COLLECTION = "cuda_fork_guard_collection"  # a key of xdist's workeroutput
_WOKEN = ("tried", "initialized", "active")


def register(config: pytest.Config, policy: str) -> None:
    """Installs the guard with this policy for the rest of the run, and the checks as a plugin."""
    if config.pluginmanager.has_plugin(_NAME):
        return
    if guard.native is None:
        raise pytest.UsageError(f"--cuda-fork-guard can't look at anything here: {guard.unsupported_reason}")
    former = guard.current_policy()
    guard.install(policy, None, None)
    checks = Checks(config, policy)
    announce.set_listener(checks.ledger.forked_unsafely)
    config.pluginmanager.register(checks, _NAME)

    def restore() -> None:
        announce.set_listener(None)
        guard.set_policy(former)

    config.add_cleanup(restore)


def _driver() -> str | None:
    assert guard.native is not None
    guard.native.settle_cuinit()
    return guard.read_status().driver


class Checks:
    """The hooks of one run."""

    def __init__(self, config: pytest.Config, policy: str) -> None:
        self.config = config
        self.policy = policy
        self.ledger = Ledger(os.getpid())
        self.woken_before = _driver() in _WOKEN
        self.collection = ""  # what to say of a collection that woke CUDA
        self.late: list[str] = []  # touches that no running test can answer for

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if not self.woken_before and _driver() in _WOKEN:
            self.collection = (
                "[CFG401] collecting the tests woke CUDA: every fork of every test is unsafe from there on.\n"
                f"  woken:   {waking.woken_line(guard.native)}\n"  # type: ignore[arg-type]
                "  do:      move that line from a module's level into a test or a fixture"
            )

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self.ledger.begin(item.nodeid)
        try:
            return (yield)
        except UnsafeForkError as error:
            # Refused to a plugin that forks around the test (pytest-forked): the test fails, not pytest.
            self._fail_whole(item, str(error))
            return True

    def _fail_whole(self, item: pytest.Item, text: str) -> None:
        report = pytest.TestReport(
            nodeid=item.nodeid,
            location=item.location,
            keywords={},
            outcome="failed",
            longrepr=text,
            when="call",
        )
        self.ledger.take()
        item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def _judged(self, item: pytest.Item, phase: str) -> Generator[None, Any, Any]:
        try:
            result = yield
        except BaseException:
            # It fails already, most likely with the refusal itself: what else was seen is told beside it.
            told = self._take()
            for text in told.own:
                item.add_report_section(phase, "cuda_fork_guard", text)
            raise
        told = self._take()
        if told.own:
            pytest.fail("\n".join(told.own), pytrace=False)
        return result

    def _take(self) -> Told:
        told = self.ledger.take(event_log.read(guard.native))
        self.late += told.late
        return told

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        return (yield from self._judged(item, "setup"))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        return (yield from self._judged(item, "call"))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
        return (yield from self._judged(item, "teardown"))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self.late += self._take().own
        output = getattr(self.config, "workeroutput", None)
        if output is not None:  # an xdist worker: its controller tells, and fails, once for all
            output[_COLLECTION] = (self.collection, self.late)
        elif (self.collection or self.late) and session.exitstatus in (
            pytest.ExitCode.OK,
            pytest.ExitCode.NO_TESTS_COLLECTED,
        ):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        collection, late = getattr(node, "workeroutput", {}).get(_COLLECTION, ("", []))
        self.collection = self.collection or collection
        self.late += late

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not (self.collection or self.late):
            return
        terminalreporter.section("cuda_fork_guard", red=True, bold=True)
        if self.collection:
            terminalreporter.line(self.collection)
        for text in self.late:
            terminalreporter.line(f"after its test had ended, so that it could not fail it:\n{text}")

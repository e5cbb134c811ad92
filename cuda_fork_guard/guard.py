"""The one stateful module: installs the guard, and acts on decisions."""

from __future__ import annotations

import os
import sys
from _thread import _local

from . import (
    announce,
    decision,
    event_log,
    evidence,
    fork_site,
    forkers,
    frames,
    policies,
    process_status,
    report,
    state,
    thread_names,
    waking,
)
from .decision import Decision
from .errors import CudaForkGuardWarning
from .fork_site import ForkSite
from .process_status import Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, ModuleType

native: ModuleType | None = None
unsupported_reason = ""
if sys.platform == "linux":
    try:
        from . import _native as native
    except ImportError as error:
        unsupported_reason = f"the native module can't be loaded: {error}"
else:
    unsupported_reason = f"cuda_fork_guard has no native module for the platform {sys.platform!r}"


class _ThreadState(_local):
    allowed: tuple[str, ...] = ()  # reasons of the allow_fork blocks this thread is in


class _Guard:
    """What this process decided about itself. Everything about forks is the native module's."""

    installed = False
    policy = policies.OFF  # where there is no native module to keep it
    handlers_error = 0
    ring = False
    forked_without_exec: bool | None = None
    trouble = ""  # the guard's own last failure: told in status(), never to the program


# Kept by the process, not by this module: if the package is removed from sys.modules and imported again, allow_fork of
# the first copy must still be known to the second one's hook, and the second import find the guard installed.
_shared = native.shared() if native is not None and native.in_main_interpreter() else {}
_guard: _Guard = _shared.setdefault("guard", _Guard())
_thread: _ThreadState = _shared.setdefault("thread", _ThreadState())


def install(policy_name: str | None, origin: bool | None, tripwire: bool | None) -> None:
    """See the package's ``install``."""
    number, complaint = current_policy(), None
    if policy_name is not None:
        number = policies.parse(policy_name)
    elif not _guard.installed and (native is None or native.in_main_interpreter()):
        number, complaint = policies.from_variable(os.environ.get(policies.VARIABLE))
    if native is not None:
        _install_native(native, origin, tripwire)
    set_policy(number)
    _guard.installed = True
    if complaint:
        announce.warn(complaint, CudaForkGuardWarning, announce.importer())


def _install_native(module: ModuleType, origin: bool | None, tripwire: bool | None) -> None:
    first = not _guard.installed
    _guard.handlers_error = module.register_fork_handlers()
    _guard.ring = module.create_ring()
    if module.generation() == 0 and first:
        flag = module.forked_without_exec()
        _guard.forked_without_exec = None if flag < 0 else bool(flag)
    if not module.in_main_interpreter():
        return  # the main interpreter's guard already sees the whole process
    if module.generation() == 0 and first and _guard.forked_without_exec is not False:
        _learn_inheritance(module)
    native_forker = forkers.native()
    module.set_native_forker(native_forker.name, native_forker.advice)
    if tripwire is not None or first:
        module.set_tripwire_wanted(tripwire is not False)
    module.hook_python_forks(_before_fork, _after_fork_in_child)
    waking.install(module, origin, first)
    module.driver_up()


def _learn_inheritance(module: ModuleType) -> None:
    """This process was, or may have been, forked before the guard was loaded in it. What can be known of that now holds
    for its own forks and its children too."""
    inherited = state.inherited_of(current_evidence(module), lambda _reason: None)
    module.set_inherited({True: evidence.YES, False: evidence.NO, None: evidence.UNKNOWN}[inherited])


def uninstall() -> None:
    """Back to no effect but the audit hook's own cost."""
    set_policy(policies.OFF)
    _guard.installed = False
    if native is not None and native.in_main_interpreter():
        native.set_tripwire_wanted(False)
        waking.uninstall(native)


def set_policy(number: int) -> None:
    _guard.policy = number
    if native is not None:
        was_off = native.policy() == policies.OFF
        native.set_policy(number)
        if was_off and number != policies.OFF:
            native.prepare_tripwire()  # nothing where CUDA is not up


def current_policy() -> int:
    return native.policy() if native is not None else _guard.policy


def push_allowed(reason: str) -> None:
    _thread.allowed = (*_thread.allowed, reason)
    if native is not None:
        native.enter_allowed()


def pop_allowed() -> None:
    _thread.allowed = _thread.allowed[:-1]
    if native is not None:
        native.leave_allowed()


def read_status() -> Status:
    """See the package's ``status``."""
    if native is None:
        return process_status.unsupported(os.getpid(), _guard.policy, unsupported_reason)
    found = current_evidence(native)
    origin, reason = waking.origin_of(native, found)
    names, why = thread_names.read(native)
    result = process_status.derive(found, origin=origin, origin_reason=reason, threads=names, threads_reason=why)
    own = filter(None, (_guard.trouble, announce.trouble()))
    troubles = waking.troubles() + tuple(f"guard: {text}" for text in own)
    return result.with_reasons(troubles) if troubles else result


def current_evidence(module: ModuleType) -> evidence.Evidence:
    return evidence.gather(
        module,
        hook_watching=waking.not_watching(),
        forked_without_exec=_guard.forked_without_exec,
        handlers_error=_guard.handlers_error,
        ring=_guard.ring,
    )


def check(frame: FrameType | None) -> None:
    """Applies the policy at ``frame``, as ``os.fork`` called there would, without recording a fork."""
    if native is None:
        return
    native.driver_up()
    site = fork_site.read(frame)
    chosen, woken = _judge(native, site)
    announce.announce(chosen, site, woken, frame, native.inherited() == evidence.YES)


def _before_fork(event: str) -> None:
    """Called by the audit hook before a fork that is unsafe or doubtful. Raising refuses the fork, so nothing but a
    refusal may escape: a fault of the guard's own must not break the program."""
    module = native
    if module is None:
        return
    try:
        frame = fork_site.caller(1)
        site = fork_site.read(frame)
        chosen, woken = _judge(module, site)
    except Exception as error:
        _guard.trouble = f"a fork could not be judged: {type(error).__name__}: {error}"
        return
    announce.announce(chosen, site, woken, frame, module.inherited() == evidence.YES)
    try:
        _intend(module, chosen, site, woken)
    except Exception as error:
        _guard.trouble = f"a fork could not be described: {type(error).__name__}: {error}"


def _judge(module: ModuleType, site: ForkSite) -> tuple[Decision, str]:
    facts = module.state()
    unsafe = facts["driver"] == evidence.UP or facts["inherited"] == evidence.YES
    chosen = decision.decide(facts["policy"], unsafe, module.allowed_forks() > 0, site)
    return chosen, _woken(module) if chosen.action != decision.PASS else ""


def _woken(module: ModuleType) -> str:
    """For the judgement: a line that can't be read must not let a fork pass that is to be refused."""
    try:
        return waking.woken_line(module)
    except Exception as error:
        return f"unknown: it can't be read: {error}"


def _intend(module: ModuleType, chosen: Decision, site: ForkSite, woken: str) -> None:
    forked = report.forked_line(site, module.state()["pid"])
    names: tuple[str, ...] | None = ()
    if chosen.action != decision.PASS:
        names, _why = thread_names.read(module)
        module.prepare_tripwire()
        if "IPython" in sys.modules:
            module.set_cells(frames.cells())
    if chosen.use == decision.USE_ALLOWED:
        forked = f"{forked} allowed: {'; '.join(_thread.allowed)}"
    module.intend_fork(
        use=chosen.use,
        forked=report.one_line(forked),
        woken=report.one_line(woken),
        advice=report.one_line(site.forker.advice),
        threads=report.one_line(", ".join(names or ())),
    )


def _after_fork_in_child() -> None:
    """After the fork of an inherited child that has torch, in its only thread."""
    if native is None:
        return
    try:
        waking.after_fork_in_child(native)
    except Exception as error:
        _guard.trouble = f"the forked child could not be set up: {type(error).__name__}: {error}"


def record(kind: int, text: str) -> None:
    if native is not None:
        native.record(kind, report.one_line(text))


def read_events() -> event_log.Events:
    return event_log.read(native)

"""Who woke CUDA: the injection hook's place in the environment, and the line that messages show."""

from __future__ import annotations

import os

from . import born, fork_site, paths
from . import origin as origins

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from .evidence import Evidence
    from .origin import Origin

VARIABLE = "CUDA_INJECTION64_PATH"  # read by cuInit (facts: "Who called cuInit")
HOOK = "cuda_fork_guard_hook.so"


class _Waking:
    not_ours = "origin: it was not installed"  # why the hook is not called, or ""
    loaded_before = ""  # why a cuInit may have been missed before the hook was there, or ""
    path = ""  # what this process put into the variable
    up_before = ""  # the import that came too late, if the driver was up by then
    observed: Origin | None = None  # the first sight of a driver that is up, if the hook did not see it wake
    stack_trouble = ""  # why a thread without the GIL will have no Python stack, or ""
    child_trouble = ""  # what can't be seen in this forked child


_waking = _Waking()


def install(module: ModuleType, origin: bool | None, first: bool) -> None:
    """Takes the hook's place in the environment, unless somebody has it.

    :param origin: False gives it up; None leaves a running guard's setting.
    """
    if first:
        # Also where the hook is not ours to place: a touch in a child needs the stacks too.
        _waking.stack_trouble = module.install_stack_capture(*paths.roots())
    if origin is None and not first and (_waking.path or _waking.not_ours == _OFF):
        return
    if origin is False:
        uninstall(module)
        _waking.not_ours = _OFF
        return
    hook = os.path.join(os.path.dirname(os.path.abspath(module.__file__ or "")), HOOK)
    _waking.not_ours = _take_place(module, hook)
    if first and module.generation() == 0:
        _look_back(module)


_OFF = "origin=False: the hook is switched off"


def _take_place(module: ModuleType, hook: str) -> str:
    taken = os.environ.get(VARIABLE, "")
    if taken.lower() == "none":
        return f"{VARIABLE}={taken} keeps the hook off"
    if taken and os.path.basename(taken) != HOOK:
        return f"{VARIABLE} was already set to {taken!r} (a profiler's?), and is left alone"
    why: str = module.listen(hook)
    if why:
        return f"the hook library can't be loaded: {why}"
    os.environ[VARIABLE] = hook
    _waking.path = hook
    return ""


def _look_back(module: ModuleType) -> None:
    if module.driver_up():
        user = fork_site.user_frame(fork_site.caller(0))
        place = f" ({paths.shown(user.f_code.co_filename)}:{user.f_lineno})" if user is not None else ""
        _waking.up_before = f"CUDA was up before cuda_fork_guard was imported{place}; import it first"
    if module.driver()["libraries"]:
        _waking.loaded_before = "libcuda was loaded before cuda_fork_guard was"


def uninstall(module: ModuleType) -> None:
    """Gives the place in the environment back, if it is still ours."""
    module.stop_listening()
    if _waking.path and os.environ.get(VARIABLE) == _waking.path:
        del os.environ[VARIABLE]
    _waking.path = ""
    _waking.not_ours = "cuda_fork_guard is uninstalled"


def not_watching_from_now() -> str:
    """Why a call of ``cuInit`` from now on would not be seen, or ""."""
    if _waking.not_ours:
        return _waking.not_ours
    if os.environ.get(VARIABLE) != _waking.path:
        return f"{VARIABLE} was changed by the program to {os.environ.get(VARIABLE)!r}"
    return ""


def not_watching() -> str:
    """Why a call of ``cuInit`` since libcuda was loaded may not have been seen, or ""."""
    return _waking.loaded_before or not_watching_from_now()


def origin_of(module: ModuleType, found: Evidence) -> tuple[Origin | None, str]:
    """(the origin, why there is none)."""
    raw = module.origin()
    if raw is not None:
        return origins.from_native(raw, up=found.known == 2 or found.code == 0 or found.inherited == 1), ""
    if found.known != 2 and found.code != 0 and found.inherited != 1:
        why = not_watching()
        return None, why if why and found.libraries else ""
    return _observe(module), _why_observed()


def _observe(module: ModuleType) -> Origin:
    if _waking.observed is None:
        _waking.observed = origins.observed(module.python_stack(), module.state()["pid"], _why_observed())
    return _waking.observed


def _why_observed() -> str:
    return _waking.up_before or not_watching()


def woken_line(module: ModuleType) -> str:
    """The ``woken:`` line: who called the first ``cuInit``, or why that is unknown."""
    raw = module.origin()
    if raw is not None:
        return origins.from_native(raw, up=None).line()
    if _waking.up_before:
        return f"unknown: {_waking.up_before}"
    why = not_watching()
    if not why:
        return "unknown: no cuInit was seen in this process"
    seen = _waking.observed
    return f"unknown: {why}" + (f"; first seen up at {seen.place()}" if seen is not None else "")


def watch_next_call(module: ModuleType) -> None:
    """The next ``cuInit`` is captured as the origin even if an earlier one, that failed, was."""
    module.capture_next_origin()


def arm(module: ModuleType, reasons: list[str]) -> None:
    """Arms this process as one that must never use CUDA (``verify_worker("cpu-only")``)."""
    module.note_stderr()
    module.set_cpu_only()
    if not module.arm_tripwire():
        why = module.tripwire()[1] or "no libcuda is loaded yet"
        seen = not_watching_from_now()
        reasons.append(
            f"tripwire: not armed: {why}; " + (f"and {seen}" if seen else "a first cuInit is seen by the hook")
        )
    module.watch_collections()
    _watch_child(module)


def after_fork_in_child(module: ModuleType) -> None:
    """In an inherited child that has torch: what it needs beyond the armed tripwire."""
    _watch_child(module)


def _watch_child(module: ModuleType) -> None:
    _waking.child_trouble = born.set_up(module)


def troubles() -> tuple[str, ...]:
    """What can't be seen in this process, for ``status``."""
    stacks = _waking.stack_trouble
    return tuple(filter(None, (_waking.child_trouble, stacks and f"origin: no Python stack without the GIL: {stacks}")))

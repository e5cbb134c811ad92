"""Who woke CUDA: the injection hook's place in the environment, and the line that messages show."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from .evidence import Evidence
    from .origin import Origin

DEFAULT_ADVICE = "x"


def install(module: ModuleType, origin: bool | None, first: bool) -> None:
    pass


def uninstall(module: ModuleType) -> None:
    pass


def not_watching() -> str:
    return "not yet"


def origin_of(module: ModuleType, found: Evidence) -> tuple[Origin | None, str]:
    return None, "not yet"


def woken_line(module: ModuleType) -> str:
    return "unknown: not yet"


def arm(module: ModuleType, reasons: list[str]) -> None:
    pass


def after_fork_in_child(module: ModuleType) -> None:
    pass

"""The context managers of the public interface."""

from __future__ import annotations

from . import guard, policies


class PolicyContext:
    """``policy(p)``: process-wide, so threads that overlap should not use it for different policies."""

    def __init__(self, name: str) -> None:
        self._number = policies.parse(name)
        self._former: list[int] = []  # a stack: the same object may be entered again inside itself

    def __enter__(self) -> None:
        self._former.append(guard.current_policy())
        guard.set_policy(self._number)

    def __exit__(self, *exception: object) -> None:
        guard.set_policy(self._former.pop())


class AllowFork:
    """``allow_fork(reason)``: of the thread that enters it."""

    def __init__(self, reason: str) -> None:
        if not isinstance(reason, str) or not reason.strip():
            raise ValueError(f"allow_fork needs a reason in words, not {reason!r}: it is kept in events()")
        self._reason = reason

    def __enter__(self) -> None:
        guard.push_allowed(self._reason)

    def __exit__(self, *exception: object) -> None:
        guard.pop_allowed()

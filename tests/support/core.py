"""The core's pure functions, called by tests."""

from __future__ import annotations

import ctypes


class Core:
    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def __call__(self, function: str, *arguments: object) -> str:
        """Text goes in and comes out as UTF-8; bytes that aren't are kept."""
        called = getattr(self._library, function)
        called.restype = ctypes.c_char_p
        given = [a.encode("utf-8", "surrogateescape") if isinstance(a, str) else a for a in arguments]
        answer: bytes = called(*given)
        return answer.decode("utf-8", "surrogateescape")

"""Checks: CUDA_INJECTION64_PATH, by which a library gets called inside cuInit. The hook is native/hook.c."""

from __future__ import annotations

import os
import threading
from typing import Any

from support.driver.api import device_count, in_child, load, query_codes


class Hook:
    """The hook's reports, read from the pipe that it writes to."""

    def __init__(self, path: str, answer: int = 1) -> None:
        self._read, write = os.pipe()
        os.set_blocking(self._read, False)
        os.environ["CUDA_INJECTION64_PATH"] = path
        os.environ["HOOK_SAYS"] = str(write)
        os.environ["HOOK_RETURNS"] = str(answer)

    def calls(self) -> list[tuple[int, int, int]]:
        """(pid, thread, result of an inner cuInit) of the calls since the last question."""
        try:
            said = os.read(self._read, 65536).decode()
        except BlockingIOError:
            return []
        return [(int(pid), int(thread), int(inner)) for pid, thread, inner in map(str.split, said.splitlines())]


def _is_mapped(path: str) -> bool:
    with open("/proc/self/maps") as maps:
        return path in maps.read()


def calls(path: str, hook_path: str, answer: int) -> dict[str, Any]:
    """Three cuInits on this thread and one on another: codes, how often the hook was called, whether on the thread
    that called cuInit, and whether it is still loaded after each."""
    library = load(path)  # before the variable is set: it is read at cuInit
    hook = Hook(hook_path, answer)
    wrong_flags = library.cuInit(1), len(hook.calls())
    seen: dict[str, Any] = {"codes": [], "counts": [], "own thread": [], "mapped": [], "wrong flags": wrong_flags}

    def initialize() -> None:
        seen["codes"].append(library.cuInit(0))
        made = hook.calls()
        seen["counts"].append(len(made))
        seen["own thread"] += [one[:2] == (os.getpid(), threading.get_native_id()) for one in made]
        seen["mapped"].append(_is_mapped(hook_path))

    for _ in range(3):
        initialize()
    thread = threading.Thread(target=initialize)
    thread.start()
    thread.join()
    return seen


def another_path_later(path: str, hook_path: str, other_path: str) -> list[int]:
    """How often each of three cuInits called a hook: accepted, accepted before, other path."""
    library = load(path)
    hook = Hook(hook_path)
    counts = []
    for name in (hook_path, hook_path, other_path):
        os.environ["CUDA_INJECTION64_PATH"] = name
        library.cuInit(0)
        counts.append(len(hook.calls()))
    return counts


def ignored(path: str, values: list[str]) -> list[int]:
    """cuInit's code with each value; the last of them is a hook, to prove that hooks would be called."""
    library = load(path)
    codes = []
    for value in values:
        os.environ["CUDA_INJECTION64_PATH"] = value
        codes.append(library.cuInit(0))
    return codes


def works_after_bad_values(path: str, values: list[str], hook_path: str) -> int:
    """How often a good hook is called after bad values of the variable."""
    library = load(path)
    for value in values:
        os.environ["CUDA_INJECTION64_PATH"] = value
        library.cuInit(0)
    hook = Hook(hook_path)
    library.cuInit(0)
    return len(hook.calls())


def reenters(path: str, hook_path: str) -> dict[str, Any]:
    """The hook itself calls cuInit: both come back, and the hook isn't called from within itself."""
    library = load(path)
    hook = Hook(hook_path)
    os.environ["HOOK_REENTERS"] = "1"
    code = library.cuInit(0)
    return {"outer": code, "inner": [inner for _, _, inner in hook.calls()]}


def in_children(path: str, hook_path: str) -> dict[str, Any]:
    """Calls of the hook in forked children: of a process that never called cuInit, and of one that did."""
    library = load(path)
    hook = Hook(hook_path)

    def calls_in_child() -> int:
        library.cuInit(0)
        return len(hook.calls())

    fresh = in_child(calls_in_child)
    library.cuInit(0)
    parent = len(hook.calls())
    return {"fresh": fresh, "parent": parent, "child": in_child(calls_in_child)}


def while_inside(path: str, hook_path: str) -> dict[str, Any]:
    """Another thread is inside cuInit, held there by the hook: what this thread gets, and what forked children get."""
    library = load(path)
    hook = Hook(hook_path)
    wait, go = os.pipe()
    os.environ["HOOK_WAITS"] = str(wait)
    inside, said = os.pipe()
    os.environ["HOOK_SAYS"] = str(said)
    codes: dict[str, int] = {}

    def initialize(who: str) -> None:
        codes[who] = library.cuInit(0)

    first = threading.Thread(target=initialize, args=["first"])
    first.start()
    os.read(inside, 1)
    # Not in the child: there the hook would wait again.
    os.environ["CUDA_INJECTION64_PATH"] = ""
    questions = query_codes(library)
    child = in_child(lambda: {"count": device_count(library)[0], "cuInit": [library.cuInit(0), library.cuInit(0)]})
    second = threading.Thread(target=initialize, args=["second"])
    second.start()
    second.join(0.2)  # it must not come back; if it does, it need not be this fast
    waits = second.is_alive()
    os.write(go, b"gg")
    first.join()
    second.join()
    del hook
    return {"questions": questions, "child": child, "second waits": waits, "codes": codes}

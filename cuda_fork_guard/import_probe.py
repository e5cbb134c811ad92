"""``python -m cuda_fork_guard.import_probe FD MODULE``: imports one module and writes to descriptor FD, as JSON, whether
that called ``cuInit``. One fresh process for each question of ``check-import``."""

from __future__ import annotations

import sys

from . import guard, no_cuda, waking

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def look(module: str) -> dict[str, Any]:
    """What importing ``module`` does, in this process."""
    found: dict[str, Any] = {"module": module, "called": None, "error": "", "reason": ""}
    native = guard.native
    why = no_cuda.looked_at()
    if native is None or why:
        return {**found, "reason": why}
    try:
        __import__(module)
    except BaseException as error:  # a module may end the interpreter: then that is what it does
        found["error"] = f"{type(error).__name__}: {error}".strip()
    native.settle_cuinit()
    status = guard.read_status()
    calls = native.state()["cuinit_calls"]
    found.update(
        called=calls > 0,
        calls=calls,
        driver=status.driver,
        library=status.library,
        simulated=status.simulated,
        origin=None if status.origin is None else status.origin.as_dict(),
        woken=waking.woken_line(native) if calls else "",
        chain=status.origin.chain_text() if status.origin is not None and calls else "",
    )
    torch = sys.modules.get("torch")
    if torch is not None and not found["called"]:
        version = getattr(torch, "version", None)
        if getattr(version, "cuda", None) is None:
            found["reason"] = f"torch {getattr(torch, '__version__', '')} is a build without CUDA: it can't call cuInit"
    return found


def main() -> None:
    import json
    import os

    descriptor = int(sys.argv[1])
    module = sys.argv[2]
    sys.argv = [module]
    answer = json.dumps(look(module)).encode()
    while answer:
        answer = answer[os.write(descriptor, answer) :]
    # The answer is complete. What a module does at exit (threads it waits for, hooks) is not the question.
    os._exit(0)


if __name__ == "__main__":
    main()

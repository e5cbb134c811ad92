"""The server's side: import the guard, then the preloads, prove that CUDA is down, hand over to CPython's own loop."""

from __future__ import annotations

import os

from cuda_fork_guard import install
from cuda_fork_guard.errors import CudaForkGuardError, StartMethodError

from . import proof, verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def main(arguments: dict[str, Any], options: dict[str, Any]) -> None:
    """Never returns: serves until no process that could ask is left, or ends after a refusal."""
    answer_to = arguments["verdict_w"]
    try:
        install(arguments["policy"])
        _load(arguments["preload"], arguments["main"], answer_to)
        verdict.clean(answer_to)
    except CudaForkGuardError as error:
        verdict.refuse(answer_to, error)
        # Not sys.exit: a preload's threads or exit functions could keep a server alive that nobody can reach.
        os._exit(1)
    except OSError:
        os._exit(1)  # a preload closed the pipe, and so told the other end already

    from . import context, cpython

    del context  # every worker needs it: imported once, here
    cpython.serve(arguments["listener_fd"], arguments["alive_r"], options)


def _load(preload: tuple[str, ...], main: dict[str, str], answer_to: int) -> None:
    proof.no_cuda(None)
    proof.no_threads(None)
    for module in preload:
        verdict.loading(answer_to, module)
        try:
            if module == "__main__":
                from . import cpython

                cpython.run_main_module(main)
            else:
                __import__(module)
        except CudaForkGuardError:
            raise
        except BaseException as error:  # SystemExit too: a module that ends the server must not do it in silence
            proof.no_cuda(module)
            raise StartMethodError(_cannot_import(module, error)) from error
        proof.no_cuda(module)
        proof.no_threads(module)


def _cannot_import(module: str, error: BaseException) -> str:
    trace = error.__traceback__
    place = ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file != __file__ and not file.startswith("<frozen "):
            place = f" at {file}:{trace.tb_lineno}"
        trace = trace.tb_next
    return (
        f"[CFG301] the preload {module!r} can't be imported in the forkserver: {type(error).__name__}: {error}{place}. "
        "No worker was started. The server has this program's sys.path; leave out of preload what can't be imported"
    )

"""A server that is not clean: no worker starts, the reason reaches whoever asked, at once, and nothing is left. Case 11."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.program import Program

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the forkserver is proved on Linux only")

PRELOADS = Path(__file__).parent / "preloads"
NOT_CLEAN = "ForkServerNotCleanError [CFG302]"
NO_SERVER = "StartMethodError [CFG301]"

START = """
import sys, time
import cuda_fork_guard as guard
import left

def work():
    raise SystemExit("a worker started")

if __name__ == "__main__":
    before = left.descriptors()
    began = time.monotonic()
    for _ in range(3):
        process = guard.get_context(preload=tuple(sys.argv[1:])).Process(target=work)
        try:
            process.start()
        except guard.StartMethodError as error:
            told = f"{type(error).__name__} {error}"
        else:
            raise SystemExit("started")
    assert time.monotonic() - began < 20
    assert process.pid is None
    assert left.children() == [], left.children()
    # The first start opens the resource tracker's pipe, which stays.
    assert left.descriptors() <= before + 1, (before, left.descriptors())
    print(told)
"""


@pytest.mark.parametrize(
    ("preload", "kind", "words"),
    [
        # The innermost line of the user's, and the module that was named as the preload.
        (
            "wakes_cuda",
            NOT_CLEAN,
            ("'wakes_cuda' woke CUDA (driver: initialized)", "use_driver.py:17 in wake", "cuInit"),
        ),
        (
            "imports_wakes_cuda",
            NOT_CLEAN,
            (
                "'imports_wakes_cuda' woke CUDA",
                "use_driver.py:17 in wake",
                "imports_wakes_cuda.py:3 -> ",
                "wakes_cuda.py:",
            ),
        ),
        ("leaves_thread", NOT_CLEAN, ("'leaves_thread' left threads running", "poller", "leaves_thread.py:7 in poll")),
        ("aborts", NO_SERVER, ("while it imported 'aborts' (killed by SIGABRT)",)),
        ("exits", NO_SERVER, ("'exits' can't be imported", "SystemExit: not here", "exits.py:5")),
        ("imports_nothing", NO_SERVER, ("No module named 'there_is_no_such_module'", "imports_nothing.py:3")),
        ("no_such_preload", NO_SERVER, ("'no_such_preload' can't be imported", "ModuleNotFoundError")),
        ("closes_all", NO_SERVER, ("while it imported 'closes_all' (",)),
    ],
)
def test_the_reason_reaches_whoever_starts_a_worker(
    program: Program, preload: str, kind: str, words: tuple[str, ...]
) -> None:
    finished = program(START, "json", preload).ok()
    assert finished.out.startswith(kind)
    for expected in words:
        assert expected in finished.out, finished.out
    assert finished.err == ""


def test_a_failed_cuinit_counts(program: Program) -> None:
    told = program(START, "wakes_cuda", CUDA_FORK_GUARD_SIM="devices=0").ok().out
    assert told.startswith(NOT_CLEAN) and "woke CUDA (driver: tried)" in told


def test_where_another_tool_has_the_hook_the_module_is_named_still(program: Program) -> None:
    told = program(START, "wakes_cuda", CUDA_INJECTION64_PATH="/nowhere/libprofiler.so").ok().out
    assert told.startswith(NOT_CLEAN) and "'wakes_cuda' woke CUDA" in told and "woken:   unknown" in told


def test_what_the_start_of_python_wakes_is_found_too(
    program: Program, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("site")
    (folder / "sitecustomize.py").write_text(
        "import sys\nif '-c' in sys.orig_argv:\n    import use_driver\n    use_driver.wake()\n", encoding="utf-8"
    )
    told = program(START, "json", PYTHONPATH=f"{folder}:{PRELOADS}").ok().out
    assert told.startswith(NOT_CLEAN) and "Python's own start" in told


def test_a_refusal_does_not_stand_in_the_way_of_the_next_preload(program: Program) -> None:
    code = """
    import cuda_fork_guard as guard
    import left
    if __name__ == "__main__":
        for preload in (("wakes_cuda",), ("aborts",), ("thread_that_ends", "use_driver")):
            try:
                process = guard.get_context(preload=preload).Process(target=abs, args=(0,))
                process.start()
                process.join()
                print(process.exitcode)
            except guard.StartMethodError as error:
                print(type(error).__name__)
        assert len(left.children()) == 1, left.children()
    """
    assert program(code).ok().lines == ["ForkServerNotCleanError", "StartMethodError", "0"]


@pytest.mark.parametrize(
    "use",
    [
        "with context.Pool(2) as pool: pool.map(abs, range(4))",
        "concurrent.futures.ProcessPoolExecutor(2, mp_context=context).submit(abs, 1).result()",
        "context.Manager()",
    ],
)
def test_pools_pass_it_on(program: Program, use: str) -> None:
    code = f"""
    import concurrent.futures
    import cuda_fork_guard as guard
    import left
    if __name__ == "__main__":
        context = guard.get_context(preload=("wakes_cuda",))
        try:
            {use}
        except guard.ForkServerNotCleanError as error:
            assert "use_driver.py:17" in str(error)
            print("refused")
        assert left.children() == [], left.children()
    """
    finished = program(code).ok()
    assert finished.out == "refused\n" and finished.err == ""


def test_a_data_loader_passes_it_on(program: Program) -> None:
    pytest.importorskip("torch")
    code = """
    import cuda_fork_guard as guard
    import left
    from torch.utils.data import DataLoader
    if __name__ == "__main__":
        context = guard.get_context(preload=("torch", "wakes_cuda"))
        loader = DataLoader(list(range(8)), num_workers=2, multiprocessing_context=context)
        try:
            iter(loader)
        except guard.ForkServerNotCleanError as error:
            print(str(error).splitlines()[0])
        assert left.children() == [], left.children()
    """
    finished = program(code).ok()
    assert "the preload 'wakes_cuda' woke CUDA" in finished.out and finished.err == ""


def test_devices_left_open_are_found(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Real device nodes, in a mount namespace of the test's own."""
    from cli import private_dev

    why_not = private_dev.why_not()
    if why_not:
        pytest.skip(why_not)
    folder = tmp_path_factory.mktemp("devices")
    (folder / "opens_device.py").write_text("FILE = open('/dev/nvidia0', 'rb')\n", encoding="utf-8")
    (folder / "program.py").write_text(
        "import cuda_fork_guard as guard\n"
        "if __name__ == '__main__':\n"
        "    try:\n"
        "        guard.get_context(preload=('opens_device',)).Process(target=abs, args=(0,)).start()\n"
        "    except guard.ForkServerNotCleanError as error:\n"
        "        print(error)\n",
        encoding="utf-8",
    )
    told = private_dev.run(folder / "program.py").ok().out
    assert "'opens_device' left GPU devices open" in told and "/dev/nvidia0" in told


def test_ctrl_c_while_the_server_loads_leaves_nothing(program: Program) -> None:
    code = """
    import os, signal, sys
    import cuda_fork_guard as guard
    import left
    if __name__ == "__main__":
        open("interrupts.py", "w").write("import os, signal\\nos.kill(os.getppid(), signal.SIGINT)\\nwhile True: pass\\n")
        try:
            guard.get_context(preload=("interrupts",)).Process(target=abs, args=(0,)).start()
        except KeyboardInterrupt:
            print("interrupted")
        assert left.children() == [], left.children()
    """
    assert program(code).ok().out == "interrupted\n"

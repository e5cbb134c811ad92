"""CUDA_FORK_GUARD alone guards every Python process below, and who does not ask for it has nothing of it."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest
from support import child, installation

pytestmark = pytest.mark.timeout(600)  # the first test that needs it builds a wheel

PARTS = "[name for name in sys.modules if name.split('.')[0] in ('cuda_fork_guard', '_cuda_fork_guard_entry')]"
POLICY = "import sys; print(sys.modules['cuda_fork_guard'].status().policy)"


@pytest.fixture(scope="session")
def wheel_python(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("wheel")
    return str(installation.make_environment(folder / "environment", installation.build_wheel(folder)))


@pytest.fixture(params=["as installed here", "from a wheel"])
def python(request) -> str:
    return sys.executable if request.param == "as installed here" else request.getfixturevalue("wheel_python")


def run(command: list[str], value: str | None = "watch", **options) -> child.Finished:
    env = child.environment(CUDA_FORK_GUARD=value, **options.pop("variables", {}))
    return child.run(command, env=env, **options)


@pytest.mark.parametrize("value", [None, ""], ids=["unset", "empty"])
def test_who_does_not_ask_has_nothing_of_it(python, value, tmp_path):
    done = run([python, "-c", f"import sys; print({PARTS})"], value, cwd=tmp_path).ok()
    assert done.out == "[]\n" and done.err == ""


@pytest.mark.parametrize("flags", [(), ("-I",), ("-E",), ("-s",), ("-P",), ("-O",), ("-X", "dev")], ids=" ".join)
def test_the_variable_alone_guards(python, flags, tmp_path):
    if flags == ("-P",) and sys.version_info < (3, 11):
        pytest.skip("Python 3.10 has no -P")
    done = run([python, *flags, "-c", POLICY], "block", cwd=tmp_path).ok()
    assert done.out == "block\n" and done.err == ""


def test_without_site_nothing_is_started(python, tmp_path):
    done = run([python, "-S", "-c", f"import sys; print({PARTS})"], "block", cwd=tmp_path).ok()
    assert done.out == "[]\n" and done.err == ""


def test_processes_below_are_guarded_too(python, tmp_path):
    (tmp_path / "program.py").write_text(
        "import multiprocessing, subprocess, sys\n"
        f"POLICY = {POLICY!r}\n"
        "def work(queue):\n"
        "    queue.put(sys.modules['cuda_fork_guard'].status().policy)\n"
        "if __name__ == '__main__':\n"
        "    for method in 'fork', 'spawn', 'forkserver':\n"
        "        context = multiprocessing.get_context(method)\n"
        "        queue = context.SimpleQueue()\n"
        "        process = context.Process(target=work, args=(queue,))\n"
        "        process.start()\n"
        "        print(method, queue.get())\n"
        "        process.join()\n"
        "    subprocess.run(['sh', '-c', f'{sys.executable} -c \"{POLICY}\"'], check=True)\n"
    )
    done = run([python, "program.py"], "warn", cwd=tmp_path).ok()
    assert done.out == "fork warn\nspawn warn\nforkserver warn\nwarn\n" and done.err == ""


def test_a_wrong_value_is_told_and_watched(python, tmp_path):
    done = run([python, "-c", POLICY], "loud", cwd=tmp_path).ok()
    assert done.out == "watch\n"
    assert "CudaForkGuardWarning" in done.err and "CUDA_FORK_GUARD" in done.err and "'loud'" in done.err
    for choice in ("off", "watch", "warn", "block"):
        assert choice in done.err


def test_a_wrong_value_with_warnings_as_errors(python, tmp_path):
    done = run([python, "-W", "error", "-c", "print('the program')"], "loud", cwd=tmp_path).ok()
    assert done.out == "the program\n"
    assert len(done.err.splitlines()) == 1 and "not guarded: CudaForkGuardWarning" in done.err


def test_a_failure_is_one_line_and_the_program_goes_on(wheel_python, tmp_path):
    package = tmp_path / "broken" / "cuda_fork_guard"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise OSError('no such\\nluck')")
    command = [wheel_python, "-c", "import sys; print('the program'); sys.exit(7)"]
    done = run(command, "block", cwd=tmp_path, variables={"PYTHONPATH": str(package.parent)})
    assert done.code == 7 and done.out == "the program\n"
    line = "cuda_fork_guard: CUDA_FORK_GUARD is set, but this process is not guarded: OSError: no such luck\n"
    assert done.err == line
    closed = ["sh", "-c", 'exec "$0" "$@" 2>&-', *command]
    assert run(closed, "block", cwd=tmp_path, variables={"PYTHONPATH": str(package.parent)}).code == 7


PROGRAMS = {
    "exit code": "import sys; sys.exit(7)",
    "message": "import sys; sys.exit('words')",
    "signal": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "interrupt": "import os, signal; os.kill(os.getpid(), signal.SIGINT); input()",
    "stdin": "import sys; print(sys.stdin.read()[::-1])",
    "traceback": "def f():\n    return 1 / 0\nf()",
    "syntax": "def (",
    "arguments": "import sys; print(sys.argv, sys.flags, sys.warnoptions)",
    "signals": "import signal; print([signal.getsignal(s) for s in signal.valid_signals()])",
    "descriptors": "import os; print(sorted(os.listdir('/proc/self/fd')))",
    "threads": "import os; print(len(os.listdir('/proc/self/task')))",
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_the_program_is_its_own(program, tmp_path):
    (tmp_path / "program.py").write_text(program)
    command = [sys.executable, "program.py", "a", "b"]
    bare = run(command, None, cwd=tmp_path, text="read me")
    assert run(command, "block", cwd=tmp_path, text="read me") == bare


def test_tools_go_on_working(tmp_path):
    for command in (["-m", "pip", "--version"], ["-m", "venv", "--without-pip", str(tmp_path / "new")]):
        bare = run([sys.executable, *command], None).ok()
        assert run([sys.executable, *command], "block").ok() == bare


def test_the_line_tests_the_variable_itself():
    """What a process pays that does not ask: no import, however small."""
    line = (Path(__file__).parents[2] / "cuda_fork_guard.pth").read_text()
    assert line.count("\n") == 1 and line.startswith("import os; os.environ.get(")


def test_killed_at_start(wheel_python, tmp_path):
    """A signal that comes while the guard is being imported is the program's, not a failure to be told in one line."""
    code = f"import os; os.kill(os.getpid(), {int(signal.SIGTERM)}); print('survived')"
    package = tmp_path / "cuda_fork_guard"
    package.mkdir()
    (package / "__init__.py").write_text(code)
    done = run([wheel_python, "-c", "print('no')"], "block", variables={"PYTHONPATH": str(tmp_path)})
    assert (done.code, done.out, done.err) == (-signal.SIGTERM, "", "")
    (package / "__init__.py").write_text("raise KeyboardInterrupt")
    done = run([wheel_python, "-c", "print('no')"], "block", variables={"PYTHONPATH": str(tmp_path)})
    assert done.code != 0 and done.out == "" and "not guarded" not in done.err

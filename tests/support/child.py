"""Runs a child program with a hard limit, and keeps everything it said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

# What never belongs on stderr: a test that wants one of these asks for it.
_RIDDLES = ("Traceback", "Exception ignored", "Segmentation fault", "Fatal Python error", "AddressSanitizer")


@dataclass(frozen=True)
class Finished:
    code: int
    out: str
    err: str

    def ok(self, *, riddles: bool = False) -> Finished:
        """Exit code 0 and, unless `riddles`, a stderr free of tracebacks."""
        assert self.code == 0, f"exit code {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"
        if not riddles:
            found = [word for word in _RIDDLES if word in self.err]
            assert not found, f"{found} on stderr:\n{self.err}"
        return self

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


def environment(**changes: str | None) -> dict[str, str]:
    """This environment without the variables that steer the guard, then with the changes (None removes)."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("CUDA_") and name not in ("PYTHONWARNINGS", "PYTHONPATH", "LD_PRELOAD")
    }
    for name, value in changes.items():
        kept.pop(name, None)
        if value is not None:
            kept[name] = value
    return kept


def run(
    command: list[str], *, limit: float = 60, env: dict[str, str] | None = None, cwd: Path | None = None, text: str = ""
) -> Finished:
    """The whole process group is killed at the limit: a hang is a failure, and leaves nothing behind."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment() if env is None else env,
        cwd=cwd,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(text, timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        raise AssertionError(f"no end after {limit} s: {command}\n--- stdout\n{out}\n--- stderr\n{err}") from None
    return Finished(process.returncode, out, err)


def python(
    code: str,
    *arguments: str,
    limit: float = 60,
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
    flags: tuple[str, ...] = (),
) -> Finished:
    """Runs `code` as a program of its own: with `cwd`, from a file there called program.py, so that lines have a name."""
    source = textwrap.dedent(code)
    if cwd is None:
        return run([sys.executable, *flags, "-c", source, *arguments], limit=limit, env=env)
    (cwd / "program.py").write_text(source, encoding="utf-8")
    return run([sys.executable, *flags, "program.py", *arguments], limit=limit, env=env, cwd=cwd)

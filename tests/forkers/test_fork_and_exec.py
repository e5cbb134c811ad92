"""Packages that fork and exec in Python: always safe, so never refused, warned about or recorded, and the child runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.child import environment, run
from support.forking import CUDA, run_program
from support.installed import installed_program, needs

CHECK = """
import cuda_fork_guard
assert cuda_fork_guard.events().counts["fork"] == 0, cuda_fork_guard.events()
"""

PEXPECT = """
import pexpect
from cuda_use import wake
wake()
child = pexpect.spawn("echo", ["ready"])
child.expect("ready")
child.wait()
"""
PTYPROCESS = """
import ptyprocess
from cuda_use import wake
wake()
child = ptyprocess.PtyProcess.spawn(["sh", "-c", "exit 3"])
assert child.wait() == 3
"""
TWISTED = """
from twisted.internet import protocol, reactor
from cuda_use import wake
wake()

class Ends(protocol.ProcessProtocol):
    def processEnded(self, reason):
        assert reason.value.exitCode == 3, reason
        reactor.stop()

reactor.spawnProcess(Ends(), "/bin/sh", ["sh", "-c", "exit 3"], usePTY={pty})
reactor.run()
"""
INVOKE = """
import invoke
from cuda_use import wake
wake()
result = invoke.run("exit 3", pty=True, warn=True, in_stream=False)
assert result.exited == 3
"""
SH = """
import sh
from cuda_use import wake
wake()
assert str(sh.echo("ready")).strip() == "ready"
"""
LOKY = """
import importlib.metadata
from loky import get_reusable_executor
from cuda_use import wake
import loky.backend.fork_exec, inspect

if __name__ == "__main__":
    assert "os.fork()" in inspect.getsource(loky.backend.fork_exec)  # 3.4.1 and before
    wake()
    with get_reusable_executor(1) as executor:
        assert executor.submit(abs, -3).result() == 3
"""


@pytest.mark.parametrize("policy", ["warn", "block"])
@pytest.mark.parametrize(
    ("module", "source"),
    [
        pytest.param("pexpect", PEXPECT, id="pexpect"),
        pytest.param("ptyprocess", PTYPROCESS, id="ptyprocess"),
        pytest.param("twisted", TWISTED.format(pty=False), id="twisted"),
        pytest.param("twisted", TWISTED.format(pty=True), id="twisted-pty"),
        pytest.param("invoke", INVOKE, id="invoke"),
        pytest.param("sh", SH, id="sh"),
        pytest.param("loky", LOKY, id="loky"),
    ],
)
def test_silence(module: str, source: str, policy: str, tmp_path: Path) -> None:
    needs(module)
    quiet = {"PYTHONWARNINGS": "ignore::DeprecationWarning"}
    finished = run_program(source + CHECK * ("__main__" not in source), tmp_path, policy, variables=quiet).ok()
    assert "[CFG" not in finished.err


SUPERVISOR = """
[supervisord]
nodaemon=true
logfile=NONE
pidfile={folder}/supervisord.pid

[program:once]
command=/bin/sh -c "echo ran > {folder}/ran; kill $(cat {folder}/supervisord.pid)"
autorestart=false
startsecs=0
"""


def test_supervisor_starts_its_programs_under_block(tmp_path: Path) -> None:
    """CUDA is woken in supervisord itself by its start-up file."""
    program = installed_program("supervisord")
    (tmp_path / "supervisord.conf").write_text(SUPERVISOR.format(folder=tmp_path))
    source = f"""
import runpy, sys
from cuda_use import wake
wake()
sys.argv = [{program!r}, "-c", "supervisord.conf"]
runpy.run_path({program!r}, run_name="__main__")
"""
    finished = run_program(source, tmp_path, "block")
    assert (tmp_path / "ran").exists(), finished
    assert "[CFG" not in finished.err + finished.out


GUNICORN = """
import os
from cuda_use import wake

bind = "unix:server.sock"
control_socket_disable = True

def when_ready(server):
    wake()
    if "GUNICORN_PID" in os.environ:
        print("new master", flush=True)
    else:
        server.reexec()  # as at SIGUSR2
"""


def test_gunicorn_s_new_master_is_started_under_block_and_its_workers_are_not(tmp_path: Path) -> None:
    program = installed_program("gunicorn")
    (tmp_path / "cuda_use.py").write_text(CUDA)
    (tmp_path / "application.py").write_text("def app(environ, start_response):\n    return []\n")
    (tmp_path / "gunicorn.conf.py").write_text(GUNICORN)
    finished = run([program, "application:app"], env=environment(CUDA_FORK_GUARD="block"), cwd=tmp_path)
    assert finished.out == "new master\n"
    assert "in reexec" not in finished.err and finished.err.count("UnsafeForkError: [CFG101]") == 2

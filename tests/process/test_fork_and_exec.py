"""Case 16: a child that replaces itself at once is harmless. Silence and no event, whatever the policy."""

from __future__ import annotations

import os
import pwd

import pytest
from support.child import environment, python

PRELUDE = """
import os, subprocess, sys
import cuda_fork_guard as guard
from cuda_fork_guard.testing import simulated_cuda

def events():
    return [str(event) for event in guard.events() if event.kind in ("fork", "allowed", "touch")]

simulated = simulated_cuda()
simulated.__enter__()
assert guard.status().fork_is_safe is False
"""

CALLS = {
    "subprocess.run": "assert subprocess.run(['true']).returncode == 0",
    "subprocess.run, close_fds": "assert subprocess.run(['true'], close_fds=False).returncode == 0",
    "shell": "assert subprocess.run('exit 3', shell=True).returncode == 3",
    "preexec_fn": "assert subprocess.run(['true'], preexec_fn=lambda: None).returncode == 0",
    "start_new_session": "assert subprocess.run(['true'], start_new_session=True).returncode == 0",
    "os.system": "assert os.system('true') == 0",
    "os.popen": "with os.popen('echo hello') as pipe: assert pipe.read() == 'hello\\n'",
    "os.posix_spawn": "assert os.waitpid(os.posix_spawn('/bin/true', ['true'], os.environ), 0)[1] == 0",
    "os.spawnv": "assert os.spawnv(os.P_WAIT, '/bin/true', ['true']) == 0",
    "os.spawnlp": "assert os.spawnlp(os.P_WAIT, 'true', 'true') == 0",
    "os.spawnv nowait": "assert os.waitpid(os.spawnv(os.P_NOWAIT, '/bin/true', ['true']), 0)[1] == 0",
    "pty.spawn": "import pty; assert pty.spawn(['true']) == 0",
    "failing exec": """
try:
    subprocess.run(['/nonexistent'])
except FileNotFoundError:
    pass
""",
    "asyncio": """
import asyncio
async def main():
    process = await asyncio.create_subprocess_exec('true')
    return await process.wait()
assert asyncio.run(main()) == 0
""",
}


def silent(call: str, policy: str, **variables: str) -> None:
    code = f"{PRELUDE}\n{call}\nassert events() == [], events()\nprint('done')"
    finished = python(code, env=environment(CUDA_FORK_GUARD=policy, **variables), flags=("-W", "error")).ok()
    assert finished.out.replace("\r", "").endswith("done\n") and finished.err == ""


@pytest.mark.parametrize("policy", ["watch", "block"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_silence(call: str, policy: str) -> None:
    silent(call, policy)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a subprocess another user")
@pytest.mark.parametrize("policy", ["watch", "block"])
def test_another_user(policy: str) -> None:
    nobody = pwd.getpwnam("nobody").pw_uid
    silent(f"assert subprocess.run(['true'], user={nobody}).returncode == 0", policy)


def test_another_user_as_oneself() -> None:
    """`user=` needs no privilege where it is one's own: the way through fork() is the same."""
    silent("assert subprocess.run(['true'], user=os.getuid()).returncode == 0", "block")


def test_pexpect() -> None:
    pytest.importorskip("pexpect")
    call = """
    import pexpect
    child = pexpect.spawn('echo', ['hello'])
    child.expect('hello')
    child.wait()
    assert pexpect.run('echo there').strip() == b'there'
    """
    from textwrap import dedent

    silent(dedent(call), "block")


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_starting_a_process_by_spawn_and_forkserver(method: str) -> None:
    call = f"""
import multiprocessing
process = multiprocessing.get_context({method!r}).Process(target=print, args=('from the child',))
process.start()
process.join()
assert process.exitcode == 0
"""
    silent(call, "block")


def test_before_hooks_that_do_audited_things_do_not_make_a_fork_of_a_subprocess() -> None:
    """logging, locks and telemetry register such hooks; they run between subprocess's event and its fork."""
    call = """
os.register_at_fork(before=lambda: open('/dev/null').close())
assert subprocess.run(['true'], preexec_fn=lambda: None).returncode == 0
"""
    silent(call, "block")


def test_a_subprocess_does_not_hide_the_next_fork() -> None:
    code = f"""{PRELUDE}
subprocess.run(['true'])
subprocess.run(['true'], preexec_fn=lambda: None)
try:
    subprocess.run(['/nonexistent'], preexec_fn=lambda: None)
except FileNotFoundError:
    pass
pid = os.fork()
if pid == 0:
    os._exit(0)
os.waitpid(pid, 0)
import ctypes
fork = ctypes.CDLL(None).fork
subprocess.Popen(['true'], preexec_fn=lambda: None).wait()
if fork() == 0:
    os._exit(0)
os.wait()
print(guard.events().counts['fork'])
"""
    assert python(code).ok().out == "2\n"


def test_a_preexec_fn_that_forks_is_a_fork() -> None:
    code = f"""{PRELUDE}
def early():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
subprocess.run(['true'], preexec_fn=early)
print(guard.events().counts['fork'])
"""
    assert python(code).ok().out == "1\n"


def test_pty_fork_alone_is_a_fork() -> None:
    code = f"""{PRELUDE}
import pty
pid, fd = pty.fork()
if pid == 0:
    os._exit(4)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 4
os.close(fd)
with guard.policy('block'):
    for fork in (pty.fork, os.forkpty):
        try:
            fork()
        except guard.UnsafeForkError:
            continue
        os._exit(1)
print(guard.events().counts['fork'])
"""
    assert python(code).ok().out == "1\n"

"""Import and capture take no signal, send none, and leave no descriptor; and they cope with programs that use theirs."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from support.child import Finished, environment, python

from cuda_fork_guard.testing import driver_folder

CLOEXEC, NOEXEC_SEAL = 1, 8
SUPPORT = str(Path(__file__).parents[1])
PRELUDE = f"""
import ctypes, faulthandler, os, resource, signal, sys, threading
sys.path.append({SUPPORT!r})
from support import signals
cuda = ctypes.CDLL({driver_folder() + "/libcuda.so.1"!r})
def wake():
    cuda.cuInit(0)
def on_a_thread():  # without the GIL, and with nothing on its stack but this
    thread = threading.Thread(target=wake)
    thread.start()
    thread.join()
first = threading.Thread(target=id, args=(0,))  # the C library takes a signal for itself with a process' first thread
first.start()
first.join()
def origin():
    import cuda_fork_guard
    found = cuda_fork_guard.status().origin
    return [frame.function for frame in found.python][-1:], found.note
"""


def child(code: str, **changes: str | None) -> Finished:
    return python(PRELUDE + code, env=environment(**changes))


def test_nothing_is_left_of_import_and_capture() -> None:
    code = """
import _ctypes  # what ctypes opens and closes is not the guard's
before = signals.dispositions(), signals.descriptors(), signals.pending()
import cuda_fork_guard
assert (signals.dispositions(), signals.descriptors(), signals.pending()) == before
on_a_thread()
assert origin() == (["wake"], ""), origin()
assert (signals.dispositions(), signals.descriptors(), signals.pending()) == before
"""
    child(code).ok()


def test_dispositions_of_the_programs_own_stay() -> None:
    """Handlers, flags and masks of every signal that can have one."""
    code = """
for number in range(1, 65):
    if number not in (signal.SIGKILL, signal.SIGSTOP, signal.SIGINT, 32, 33, 57):
        signal.signal(number, signal.SIG_IGN if number % 3 else lambda *_: None)
signal.siginterrupt(signal.SIGUSR1, False)
before = signals.dispositions()
import cuda_fork_guard
on_a_thread()
assert origin() == (["wake"], ""), origin()
assert signals.dispositions() == before
"""
    child(code).ok()


def test_no_signal_is_free() -> None:
    code = """
for number in range(34, 65):
    signal.signal(number, signal.SIG_IGN)
before = signals.dispositions()
import cuda_fork_guard
on_a_thread()
print(origin())
assert signals.dispositions() == before
"""
    assert "no signal was free" in child(code).ok().out


def test_an_alternate_stack_of_the_programs_own_stays() -> None:
    code = """
memory = ctypes.create_string_buffer(1 << 16)
class Stack(ctypes.Structure):
    _fields_ = [("sp", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t)]
own = Stack(ctypes.addressof(memory), 0, len(memory))
assert ctypes.CDLL(None).sigaltstack(ctypes.byref(own), None) == 0
before = signals.alternate_stack()
import cuda_fork_guard
assert signals.alternate_stack() == before
"""
    child(code).ok()


def test_the_users_faulthandler_registrations_work_before_and_after() -> None:
    """GIVEN the signals at which the guard looks first, some registered by the user WHEN each is raised THEN the user's
    file gets the stack, and the origin is right all the same."""
    code = """
import tempfile
files = {}
def register(number):
    files[number] = tempfile.TemporaryFile()
    faulthandler.register(number, file=files[number], all_threads=False, chain=False)
for number in (58, 56, signal.SIGUSR1):
    register(number)
import cuda_fork_guard
register(signal.SIGUSR2)
on_a_thread()
assert origin() == (["wake"], ""), origin()
for number, file in files.items():
    signal.raise_signal(number)
    file.seek(0)
    assert file.read().count(b"most recent call first") == 1, number
"""
    child(code).ok()


def test_faulthandler_dumps_a_stack_overflow_as_without_the_guard() -> None:
    """faulthandler believes that its alternate stack is in place, so it has to be."""
    code = """
import cuda_fork_guard
faulthandler.enable()
faulthandler._stack_overflow()
"""
    finished = child(code)
    assert finished.code == -11 and "Fatal Python error: Segmentation fault" in finished.err


TAKEN = """
limit = min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], 4096)
import cuda_fork_guard
for number in range(limit - 100, limit):
    os.dup2(0, number)
before = signals.descriptors()
on_a_thread()
print(origin())
assert signals.descriptors() == before
"""


def test_the_program_took_the_number() -> None:
    assert child(TAKEN).ok().out == "([], 'the program uses the file descriptor number reserved for it')\n"


def test_numbers_in_use_at_import_are_passed_over() -> None:
    taken, _, rest = TAKEN.partition("import cuda_fork_guard\n")
    numbers, before, asked = rest.partition("before")
    code = f"{taken}{numbers.replace('limit - 100', 'limit - 50')}import cuda_fork_guard\n{before}{asked}"
    assert child(code).ok().out == "(['wake'], '')\n"


def test_the_limit_was_lowered() -> None:
    code = """
import cuda_fork_guard
resource.setrlimit(resource.RLIMIT_NOFILE, (100, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
on_a_thread()
print(origin())
"""
    assert child(code).ok().out == "([], 'the limit on open files was lowered')\n"


@pytest.mark.parametrize("spare", [0, 1])
def test_no_descriptor_is_free(spare: int) -> None:
    """One is not enough: the memory file has a low number before it gets its own."""
    code = f"""
resource.setrlimit(resource.RLIMIT_NOFILE, (120, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
import cuda_fork_guard
kept = [os.open("/dev/null", 0)]
try:
    while True:
        kept.append(os.dup(0))
except OSError:
    pass
for number in kept[:{spare}]:
    os.close(number)
on_a_thread()
for number in kept[{spare}:]:
    os.close(number)
print(origin())
"""
    assert child(code).ok().out == "([], 'no file descriptor was free')\n"


@pytest.mark.parametrize("error", [errno.EPERM, errno.ENOSYS])
def test_a_sandbox_refuses_memory_files(error: int) -> None:
    code = f"""
import cuda_fork_guard
signals.refuse(signals.MEMFD_CREATE, {error})
on_a_thread()
print(origin())
"""
    assert child(code).ok().out == "([], 'the system refused memfd_create')\n"


def test_a_kernel_that_does_not_know_the_newer_flag() -> None:
    """Before Linux 6.3 the call with it is an error, and made again without."""
    code = f"""
import cuda_fork_guard
signals.refuse(signals.MEMFD_CREATE, {errno.EINVAL}, second_argument={CLOEXEC | NOEXEC_SEAL})
on_a_thread()
print(origin())
"""
    assert child(code).ok().out == "(['wake'], '')\n"


def test_a_filter_that_wants_the_newer_flag() -> None:
    """vm.memfd_noexec=2: without it the call is refused."""
    code = f"""
import cuda_fork_guard
signals.refuse(signals.MEMFD_CREATE, {errno.EACCES}, second_argument={CLOEXEC})
on_a_thread()
print(origin())
"""
    assert child(code).ok().out == "(['wake'], '')\n"

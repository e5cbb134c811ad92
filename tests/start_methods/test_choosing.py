"""Which method get_context and set_start_method take, and what they say when it is too late. Case 12."""

from __future__ import annotations

import sys

import pytest
from support.program import Program

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the forkserver is proved on Linux only")


def test_importing_the_guard_imports_no_multiprocessing(program: Program) -> None:
    code = """
    import sys
    import cuda_fork_guard
    print([name for name in sys.modules if name.split(".")[0] == "multiprocessing"])
    """
    assert program(code).ok().out == "[]\n"


@linux
def test_auto_is_the_forkserver_and_fixes_nothing(program: Program) -> None:
    code = """
    import multiprocessing
    import cuda_fork_guard as guard
    context = guard.get_context()
    assert context is guard.get_context("auto") is guard.get_context("forkserver")
    assert isinstance(context, multiprocessing.context.BaseContext)
    print(context.get_start_method(), guard.get_context("spawn").get_start_method(), guard.get_context("fork")._name)
    print(multiprocessing.get_start_method(allow_none=True))
    """
    assert program(code).ok().lines == ["forkserver spawn fork", "None"]


def test_auto_is_spawn_where_no_forkserver_can_be_proved(program: Program) -> None:
    code = """
    import sys
    sys.modules["cuda_fork_guard._native"] = None  # as on a platform for which none is built
    import cuda_fork_guard as guard
    assert guard.status().supported is False
    print(guard.get_context().get_start_method(), guard.set_start_method(preload=("json",)))
    """
    assert program(code).ok().out == "spawn spawn\n"


@pytest.mark.parametrize("method", ["threads", "", "Fork"])
def test_an_unknown_method_lists_what_there_is(program: Program, method: str) -> None:
    code = """
    import multiprocessing, sys
    import cuda_fork_guard as guard
    for function in (guard.get_context, guard.set_start_method):
        try:
            function(sys.argv[1])
        except guard.StartMethodError as error:
            assert isinstance(error, ValueError)
            text = str(error)
            assert text.startswith("[CFG301] ") and repr(sys.argv[1]) in text, text
            assert all(name in text for name in multiprocessing.get_all_start_methods()), text
        else:
            raise SystemExit("accepted")
    """
    program(code, method).ok()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("preload='torch'", "preload=('torch',)"),
        ("preload=(1,)", "1 is none"),
        ("preload=('',)", "'' is none"),
        ("'spawn', preload=('json',)", "forkserver only"),
        ("'fork', preload=('json',)", "forkserver only"),
    ],
)
def test_a_preload_that_can_not_be_one(program: Program, arguments: str, words: str) -> None:
    code = f"""
    import cuda_fork_guard as guard
    try:
        guard.get_context({arguments})
    except guard.StartMethodError as error:
        print(error)
    """
    told = program(code).ok().out
    assert told.startswith("[CFG301] ") and words in told


def test_case_12_a_default_fixed_elsewhere_names_the_method_and_the_way_out(program: Program) -> None:
    code = """
    import multiprocessing
    import cuda_fork_guard as guard
    multiprocessing.set_start_method("fork")
    try:
        guard.set_start_method("spawn")
    except guard.StartMethodError as error:
        print(error)
    print(multiprocessing.get_start_method())
    """
    told, after = program(code).ok().lines
    assert told.startswith("[CFG301] the start method is already fixed to 'fork', 'spawn' comes too late")
    assert "that Python does not record" in told and "cuda_fork_guard.get_context()" in told
    assert after == "fork"


def test_case_12_a_default_that_the_guard_fixed_names_the_line(program: Program) -> None:
    code = """
    import cuda_fork_guard as guard
    def set_up():
        return guard.set_start_method("spawn")
    assert set_up() == set_up() == "spawn"
    try:
        guard.set_start_method("forkserver")
    except guard.StartMethodError as error:
        print(error)
    """
    told = program(code).ok().out
    assert "program.py:4 in set_up, by cuda_fork_guard.set_start_method" in told, told


@pytest.mark.parametrize("act", ["Lock()", "Queue()", "get_start_method()", "Pool(1).terminate()", "Value('i')"])
def test_case_12_a_default_fixed_by_use(program: Program, act: str) -> None:
    code = f"""
    import multiprocessing
    import cuda_fork_guard as guard
    if __name__ == "__main__":
        multiprocessing.{act}
        fixed = multiprocessing.get_start_method(allow_none=True)
        try:
            guard.set_start_method("spawn")
        except guard.StartMethodError as error:
            assert f"already fixed to {{fixed!r}}" in str(error), error
            print("refused")
    """
    assert program(code).ok().out == "refused\n"


@linux
@pytest.mark.parametrize("before", ["pass", "multiprocessing.set_start_method('forkserver')"])
def test_set_start_method_makes_the_proved_forkserver_the_default(program: Program, before: str) -> None:
    code = f"""
    import multiprocessing
    import cuda_fork_guard as guard
    def work(queue):
        # A worker's own default is the proved one too, from the same server.
        import os
        queue.put((multiprocessing.get_context() is guard.get_context(preload=("json",)), os.getppid()))
    if __name__ == "__main__":
        {before}
        assert guard.set_start_method(preload=("json",)) == "forkserver"
        assert multiprocessing.get_start_method() == "forkserver"
        assert multiprocessing.get_context() is guard.get_context(preload=("json",))
        queue = multiprocessing.SimpleQueue()
        told = []
        for _ in range(2):
            process = multiprocessing.Process(target=work, args=(queue,))
            process.start()
            told.append(queue.get())
            process.join()
            assert process.exitcode == 0
        assert told[0] == told[1] and told[0][0] is True, told
        with multiprocessing.Pool(2) as pool:
            print(pool.map(abs, [-1, -2]))
    """
    assert program(code).ok().out == "[1, 2]\n"


@linux
def test_cuda_that_is_up_already_does_not_matter_to_a_fresh_server(program: Program) -> None:
    code = """
    import cuda_fork_guard as guard
    import use_driver
    def work():
        guard.verify_worker("clean")
        assert use_driver.wake() == 0
    if __name__ == "__main__":
        guard.install("block")
        assert use_driver.wake() == 0
        assert guard.set_start_method() == "forkserver"
        import multiprocessing
        process = multiprocessing.Process(target=work)
        process.start()
        process.join()
        print(process.exitcode)
    """
    assert program(code).ok().out == "0\n"


@linux
def test_a_second_different_preload_while_the_server_runs(program: Program) -> None:
    code = """
    import cuda_fork_guard as guard
    if __name__ == "__main__":
        context = guard.get_context(preload=("json", "csv"))
        other = guard.get_context(preload=("calendar",))  # nothing runs yet
        process = context.Process(target=abs, args=(0,))
        process.start()
        process.join()
        assert guard.get_context(preload=("csv", "json")).Process
        guard.get_context().Process(target=abs, args=(0,)).start()
        for attempt in (
            lambda: guard.get_context(preload=("calendar",)),
            lambda: guard.set_start_method(preload=("json",)),
            lambda: other.Process(target=abs, args=(0,)).start(),
        ):
            try:
                attempt()
            except guard.StartMethodError as error:
                assert "already runs with preload=('json', 'csv')" in str(error) and "get_context()" in str(error), error
            else:
                raise SystemExit("accepted")
        context.Process(target=abs, args=(0,)).start()
    """
    program(code).ok()


@linux
def test_defaults_are_looked_at_without_fixing_any(program: Program) -> None:
    pytest.importorskip("multiprocess")
    code = """
    import multiprocessing, multiprocess
    from cuda_fork_guard import start_method
    assert start_method.defaults() == {"multiprocessing": None, "multiprocess": None}, start_method.defaults()
    multiprocess.set_start_method("spawn")
    assert start_method.defaults() == {"multiprocessing": None, "multiprocess": "spawn"}
    multiprocessing.set_start_method("spawn")
    """
    program(code).ok()

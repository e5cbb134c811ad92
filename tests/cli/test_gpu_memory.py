"""Memory by process: the real nvidia-ml-py against a stand-in for the driver's library."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from support import child

pytest.importorskip("pynvml", reason="needs nvidia-ml-py")

MIB = 1 << 20


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("nvml")
    source = Path(__file__).with_name("stand_in_nvml.c")
    command = ["cc", "-shared", "-fPIC", "-o", str(folder / "libnvidia-ml.so.1"), str(source)]
    subprocess.run(command, check=True, timeout=60)
    return folder


@pytest.fixture
def ask(library, tmp_path):
    def ask(world: str | None, code: str = "print(json.dumps(gpu_memory()))") -> child.Finished:
        path = None
        if world is not None:
            path = tmp_path / "world"
            path.write_text(world)
        env = child.environment(LD_LIBRARY_PATH=str(library), STAND_IN_NVML=str(path) if path else None)
        return child.python(f"import json\nfrom cuda_fork_guard.cli.gpu_memory import *\n{code}", env=env)

    return ask


def test_each_process_once_per_device(ask):
    """Parts of a split GPU add up; what is in both lists is one and the same memory."""
    world = f"0 c 11 {MIB}\n0 c 11 {2 * MIB}\n0 g 11 {MIB}\n0 g 12 {5 * MIB}\n1 c 11 {7 * MIB}\n1 c 13 -1\n"
    charges, reason = json.loads(ask(world).ok().out)
    assert reason is None
    assert charges == [[11, 0, 1, 3 * MIB], [12, 0, 1, 5 * MIB], [11, 1, 0, 7 * MIB], [13, 1, 0, None]]


def test_nothing_runs(ask):
    assert json.loads(ask("").ok().out) == [[], None]


def test_no_driver(ask):
    assert json.loads(ask(None).ok().out) == [[], "NVML: Driver Not Loaded"]


def test_no_library():
    code = "from cuda_fork_guard.cli.gpu_memory import *\nprint(gpu_memory())"
    assert "no driver is installed" in child.python(code).ok().out


def test_a_driver_that_hangs(library):
    code = """
        from cuda_fork_guard.cli import gpu_memory
        gpu_memory._DEADLINE = 0.3
        print(gpu_memory.gpu_memory())
    """
    env = child.environment(LD_LIBRARY_PATH=str(library), STAND_IN_NVML="hangs")
    assert "has not answered" in child.python(code, env=env).ok().out


def test_memory_beside_its_holders(library, tmp_path):
    """Charged to a process that is gone, kept by an orphan: a row of its own that names the keeper."""
    import private_dev

    reason = private_dev.why_not()
    if reason is not None:
        pytest.skip(reason)
    program = tmp_path / "program.py"
    program.write_text(f"""
import os, json
from stage import *
with stage():
    hold(GPU, UVM)
    kept = orphan()
    gone = os.fork()
    if gone == 0:
        os._exit(0)
    os.waitpid(gone, 0)
    world = {str(tmp_path / "world")!r}
    with open(world, "w") as file:
        file.write(f"1 c {{os.getpid()}} {3 * MIB}\\n1 c {{gone}} {1135 * MIB}\\n0 c {{gone}} {MIB}\\n")
    os.environ["LD_LIBRARY_PATH"], os.environ["STAND_IN_NVML"] = {str(library)!r}, world
    answer = report()
    memory = {{row["pid"]: row["memory_bytes"] for row in answer["holders"]}}
    assert (memory[os.getpid()], memory[kept]) == ({3 * MIB}, None), memory
    # The second device's node is nvidia0, which the orphan holds; the first one's is nvidia1, which nobody does.
    first, second = answer["gone"]
    assert (first["pid"], first["device"], first["memory_bytes"]) == (gone, 0, {MIB}), answer["gone"]
    assert (second["pid"], second["device"], second["memory_bytes"]) == (gone, 1, {1135 * MIB}), answer["gone"]
    assert kept not in first["kept_by"] and kept in second["kept_by"]
    assert answer["memory_source"] == "nvml" and answer["memory_reason"] is None
    text = holders(code=1).stdout
    assert "gone; kept by " in text and "1135 MiB" in text
""")
    assert private_dev.run(program).ok().out.endswith("played\n")

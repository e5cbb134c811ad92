"""`doctor` as a whole program, and called inside programs in the states it describes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest
from support import child

DOCTOR = [sys.executable, "-m", "cuda_fork_guard"]
HERE = "import json, sys\nfrom cuda_fork_guard.cli.doctor import diagnose\n"


def doctor(*arguments: str, **variables: str | None) -> child.Finished:
    done = child.run([*DOCTOR, *arguments], env=child.environment(**variables))
    assert "Traceback" not in done.err
    return done


def inside(code: str, **variables: str | None) -> dict:
    return json.loads(child.python(HERE + code, env=child.environment(**variables)).ok().out)


def test_json():
    done = doctor("--json")
    report = json.loads(done.out)
    assert report["schema"] == 1 and report["complete"] is True and done.err == ""
    assert done.code == (1 if report["hazards"] else 0)
    assert report["python"]["executable"] == sys.executable
    assert report["status"]["policy"] == "watch" and report["status"]["driver"] == "absent"
    assert doctor("doctor", "--json").code == done.code


def test_text_is_one_screen():
    done = doctor()
    assert done.code in (0, 1) and done.err == ""
    lines = done.out.splitlines()
    assert lines[0].startswith("cuda_fork_guard ") and len(lines) < 50
    for label in ("system:", "Python:", "start methods:", "torch:", "kernel driver:", "device nodes:", "policy:"):
        assert any(line.strip().startswith(label) for line in lines), label


def test_hazards_are_found_and_told():
    done = doctor(CUDA_FORK_GUARD="loud")
    assert done.code == 1 and "CFG503: CUDA_FORK_GUARD=loud is not a policy" in done.out and "\n  do: " in done.out
    report = json.loads(doctor("--json", CUDA_INJECTION64_PATH="/opt/nsys/libToolsInjection64.so").out)
    assert [hazard["code"] for hazard in report["hazards"]] == ["CFG507", "CFG508"]
    assert {"tool": "Nsight Systems", "sign": "in CUDA_INJECTION64_PATH"} in report["tools"]["others"]


def test_bad_usage():
    done = doctor("--jsno")
    assert done.code == 2 and done.out == "" and "unrecognized arguments" in done.err


def test_no_secret_is_shown():
    for arguments in ((), ("--json",)):
        done = doctor(
            *arguments, HF_TOKEN="hunter2", CUDA_TOKEN="hunter2", NV_TPS_LAUNCH_TOKEN="hunter2", container="hunter2"
        )
        assert "hunter2" not in done.out + done.err and "Nsight Compute" in done.out


def test_a_libcuda_is_found_and_not_loaded():
    code = """
from cuda_fork_guard.testing import driver_folder
report = diagnose()
with open("/proc/self/maps") as file:
    report["mapped"] = "libcuda" in file.read()
print(json.dumps([report, driver_folder()]))
"""
    folder = child.python("from cuda_fork_guard.testing import driver_folder; print(driver_folder())").ok().out.strip()
    report, _ = inside(code, LD_LIBRARY_PATH=folder)
    assert report["driver"]["found"][0]["path"] == f"{folder}/libcuda.so.1"
    assert report["mapped"] is False and report["status"]["driver"] == "absent"


def test_nothing_is_fixed_or_imported():
    report = inside("""
report = diagnose()
import multiprocessing
report["fixed"] = [multiprocessing.get_start_method(allow_none=True)]
for name in ("torch", "joblib", "numpy"):
    assert name not in sys.modules, name
multiprocessing.set_start_method("spawn")
report["then"] = diagnose()["start_methods"]
print(json.dumps(report))
""")
    assert report["fixed"] == [None]
    methods = report["start_methods"]
    assert methods["multiprocessing"] == {"default": methods["available"][0], "fixed": False}
    assert report["then"]["multiprocessing"] == {"default": "spawn", "fixed": True}


def test_multiprocess_has_a_default_of_its_own():
    pytest.importorskip("multiprocess", reason="needs multiprocess")
    report = inside("""
import multiprocessing, multiprocess
multiprocessing.set_start_method("spawn")
report = diagnose()["start_methods"]
report["fixed"] = multiprocess.get_start_method(allow_none=True)
multiprocess.set_start_method("forkserver")
report["then"] = diagnose()["start_methods"]["multiprocess"]
print(json.dumps(report))
""")
    assert report["multiprocess"] == {"default": report["available"][0], "fixed": False}
    assert report["fixed"] is None and report["then"] == {"default": "forkserver", "fixed": True}


def test_joblib_is_asked_if_it_is_there():
    pytest.importorskip("joblib", reason="needs joblib")
    before, after = inside(
        """
before = diagnose()["start_methods"]["joblib"]
import joblib
from joblib.externals.loky import set_loky_pickler
from joblib.externals.loky.backend.context import set_start_method
set_start_method("spawn")
print(json.dumps([before, diagnose()["start_methods"]["joblib"]]))
""",
        JOBLIB_START_METHOD="forkserver",
    )
    assert (before["default"], before["fixed"], before["multiprocessing_backend"]) == ("loky", False, "forkserver")
    assert (after["default"], after["fixed"]) == ("spawn", True)


@pytest.mark.torch
def test_torch_is_read_and_asked():
    torch = pytest.importorskip("torch", reason="needs torch")
    before, after = inside("""
before = diagnose()
import torch.multiprocessing
assert torch.multiprocessing.get_start_method(allow_none=True) is None
torch.multiprocessing.set_start_method("spawn")
print(json.dumps([before, diagnose()]))
""")
    for report in (before, after):
        assert report["torch"]["version"] == torch.__version__ and report["torch"]["cuda"] == torch.version.cuda
    assert before["torch"]["loaded"] is False and after["torch"]["loaded"] is True
    assert before["torch"]["cuda_initialized"] is None and after["torch"]["cuda_initialized"] is False
    assert before["start_methods"]["torch.multiprocessing"] == before["start_methods"]["multiprocessing"]
    assert after["start_methods"]["torch.multiprocessing"] == {"default": "spawn", "fixed": True}


def test_without_torch_and_the_others():
    report = inside("""
for name in ("torch", "multiprocess", "joblib"):
    sys.modules[name] = None
print(json.dumps(diagnose()))
""")
    methods = report["start_methods"]
    assert report["torch"] is None
    assert methods["torch.multiprocessing"] is methods["multiprocess"] is methods["joblib"] is None


def test_cuda_is_up_and_a_fork_inherits_it():
    code = """
import os
from cuda_fork_guard.testing import simulated_cuda
with simulated_cuda():
    parent = diagnose()
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, json.dumps(diagnose()).encode())
        os._exit(0)
    os.close(write)
    with open(read) as file:
        print(json.dumps([parent, json.load(file)]))
    os.wait()
"""
    parent, forked = inside(code)
    assert [hazard["code"] for hazard in parent["hazards"]] == ["CFG502"]
    assert parent["status"]["driver"] == "initialized" and parent["status"]["simulated"] is True
    assert [hazard["code"] for hazard in forked["hazards"]] == ["CFG501", "CFG502"]


def test_a_profiler_among_the_parents(tmp_path):
    """A script is called by its file's name."""
    script = tmp_path / "nsys"
    script.write_text('#!/bin/sh\n"$@"\nexit $?\n')
    script.chmod(0o755)
    done = child.run([str(script), *DOCTOR, "--json"])
    (tool,) = json.loads(done.out)["tools"]["others"]
    assert tool["tool"] == "Nsight Systems" and "started this one" in tool["sign"]


@pytest.mark.skipif(shutil.which("ldconfig", path="/sbin:/usr/sbin:/usr/bin") is None, reason="needs ldconfig")
def test_the_cache_is_what_ldconfig_prints():
    from cuda_fork_guard.cli.facts import loader_path

    ldconfig = shutil.which("ldconfig", path="/sbin:/usr/sbin:/usr/bin")
    printed = subprocess.run([str(ldconfig), "-p"], capture_output=True, text=True, check=True).stdout
    assert loader_path._printed_cache() == printed


def test_proc_not_mounted(tmp_path):
    import private_dev

    reason = private_dev.why_not()
    if reason is not None:
        pytest.skip(reason)
    program = tmp_path / "program.py"
    program.write_text(
        "import subprocess, sys\n"
        "subprocess.run(['mount', '-t', 'tmpfs', 'none', '/proc'], check=True)\n"
        f"sys.exit(subprocess.run({DOCTOR!r}).returncode)\n"
    )
    done = private_dev.run(program)
    assert done.code in (1, 3) and "/proc is not mounted" in done.err and "Traceback" not in done.err

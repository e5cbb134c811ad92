"""The doctor's facts on file trees of machines that this one is not."""

from __future__ import annotations

import os
import platform
import stat
from pathlib import Path

import pytest

from cuda_fork_guard.cli.facts import environment, gpu, interpreter, loader_path, system, tools, torch_build

DIGITS = "0123456789abcdef" * 4
OPEN_MODULE = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (dvs-builder@U22)\nGCC\n"
)
CLOSED_MODULE = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.163.01  Tue Apr  8 12:41:17 UTC 2025\nGCC version 12\n"
)


def put(root: str, path: str, content: str = "") -> None:
    target = Path(root + path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(content)


@pytest.mark.parametrize(
    ("files", "environ", "container"),
    [
        ({}, {}, None),
        ({"/.dockerenv": ""}, {}, "Docker"),
        ({"/run/.containerenv": ""}, {"container": "podman"}, "Podman"),
        ({}, {"APPTAINER_CONTAINER": "/secret/image.sif"}, "Apptainer"),
        (
            {"/proc/self/cgroup": f"0::/kubepods/pod1/{DIGITS}\n"},
            {"KUBERNETES_SERVICE_HOST": "1"},
            f"Kubernetes {DIGITS[:12]}",
        ),
        ({"/proc/self/cgroup": f"0::/docker/{DIGITS}\n"}, {}, f"unnamed {DIGITS[:12]}"),
        ({"/proc/self/cgroup": "0::/user.slice\n"}, {}, None),
    ],
)
def test_container(tmp_path, files, environ, container):
    for path, content in files.items():
        put(str(tmp_path), path, content)
    assert system.system(str(tmp_path), environ)["container"] == container


@pytest.mark.parametrize(
    ("release", "wsl"),
    [("5.15.167.4-microsoft-standard-WSL2\n", True), ("4.4.0-19041-Microsoft\n", True), ("6.1.0-18-amd64\n", False)],
)
def test_wsl(tmp_path, release, wsl):
    put(str(tmp_path), "/proc/sys/kernel/osrelease", release)
    found = system.system(str(tmp_path), {})
    assert found["wsl"] is wsl and found["kernel"] == release.strip()


def test_jetson(tmp_path):
    root = str(tmp_path)
    assert system.system(root, {})["jetson"] is None
    put(root, "/etc/nv_tegra_release", "# R36 (release), REVISION: 4.0\nmore\n")
    assert system.system(root, {})["jetson"] == "# R36 (release), REVISION: 4.0"
    put(root, "/proc/device-tree/model", "NVIDIA Jetson AGX Orin Developer Kit\0")
    assert system.system(root, {})["jetson"] == "NVIDIA Jetson AGX Orin Developer Kit"
    put(root, "/proc/device-tree/model", "Raspberry Pi 4 Model B Rev 1.4\0")
    assert system.system(root, {})["jetson"] == "# R36 (release), REVISION: 4.0"


def test_distribution(tmp_path):
    put(str(tmp_path), "/etc/os-release", 'ID=debian\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n')
    assert system.system(str(tmp_path), {})["distribution"] == "Debian GNU/Linux 12 (bookworm)"


@pytest.mark.parametrize(("text", "version"), [(OPEN_MODULE, "580.65.06"), (CLOSED_MODULE, "550.163.01"), ("?", None)])
def test_kernel_driver(tmp_path, text, version):
    root = str(tmp_path)
    assert gpu.kernel_driver(root) is None
    put(root, "/proc/driver/nvidia/version", text)
    assert gpu.kernel_driver(root) == version
    put(root, "/sys/module/nvidia/version", "470.256.02\n")
    assert gpu.kernel_driver(root) == (version or "470.256.02")


def test_a_machine_with_gpus(tmp_path):
    root = str(tmp_path)
    put(root, "/proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t NVIDIA H100 PCIe\nIRQ: 1\n")
    put(root, "/proc/driver/nvidia/capabilities/gpu0/mig/gi1/access", "")
    put(root, "/proc/driver/nvidia/capabilities/gpu0/mig/config", "")
    put(root, "/tmp/nvidia-mps/control", "")
    for node in ("nvidia0", "nvidiactl", "nvidia-caps/nvidia-cap1", "nvme0", "null"):
        put(root, f"/dev/{node}")
    found = gpu.gpu(root, {"CUDA_VISIBLE_DEVICES": "MIG-1234"})
    assert found["models"] == ["NVIDIA H100 PCIe"] and found["mps"] == "/tmp/nvidia-mps"
    assert found["mig"] == ["gpu0/gi1", "CUDA_VISIBLE_DEVICES selects an instance"]
    nodes = found["nodes"]
    assert [node["path"] for node in nodes] == ["/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-caps/nvidia-cap1"]
    assert not any(node["device"] for node in nodes)  # plain files here


def test_mps_elsewhere(tmp_path):
    put(str(tmp_path), "/run/mps/control")
    assert gpu.gpu(str(tmp_path), {})["mps"] is None
    assert gpu.gpu(str(tmp_path), {"CUDA_MPS_PIPE_DIRECTORY": "/run/mps"})["mps"] == "/run/mps"


def test_a_machine_without(tmp_path):
    empty = {"kernel_driver": None, "models": [], "nodes": [], "mig": [], "mps": None}
    assert gpu.gpu(str(tmp_path), {}) == empty


def test_libcuda_in_the_loaders_order(tmp_path):
    root = str(tmp_path)
    for path in ("/opt/cuda/lib64/stubs/libcuda.so.1", "/usr/lib/x86_64-linux-gnu/libcuda.so.550.54.14"):
        put(root, path)
    put(root, "/usr/lib/wsl/lib/libcuda.so.1")
    os.symlink("libcuda.so.550.54.14", f"{root}/usr/lib/x86_64-linux-gnu/libcuda.so.1")
    stub = {"path": "/opt/cuda/lib64/stubs/libcuda.so.1", "version": None, "stub": True}
    wsl = {"path": "/usr/lib/wsl/lib/libcuda.so.1", "version": None, "stub": False}
    real = {"path": "/usr/lib/x86_64-linux-gnu/libcuda.so.1", "version": "550.54.14", "stub": False}
    environ = {"LD_LIBRARY_PATH": "/nowhere::/opt/cuda/lib64/stubs:/usr/lib/wsl/lib"}
    assert loader_path.libcuda_found(root, environ) == [stub, wsl, real]
    assert loader_path.libcuda_found(root, {}) == [wsl, real]
    assert loader_path.libcuda_found(str(tmp_path / "empty"), {}) == []


def test_the_loaders_cache():
    printed = (
        "1277 libs found in cache `/etc/ld.so.cache'\n"
        "\tlibcudart.so.12 (libc6,x86-64) => /usr/local/cuda/lib64/libcudart.so.12\n"
        "\tlibcuda.so.1 (libc6) => /usr/lib/i386-linux-gnu/libcuda.so.1\n"
        "\tlibcuda.so.1 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libcuda.so.1\n"
        "\tlibcuda.so.1 (libc6,AArch64) => /usr/lib/aarch64-linux-gnu/libcuda.so.1\n"
        "\tlibcuda.so (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libcuda.so\n"
    )
    expected = {
        "x86_64": ["/usr/lib/x86_64-linux-gnu/libcuda.so.1"],
        "aarch64": ["/usr/lib/aarch64-linux-gnu/libcuda.so.1"],
    }
    assert loader_path.cached(printed) == expected[platform.machine()]
    assert loader_path.cached("") == []


@pytest.mark.parametrize(
    ("value", "owner", "missing"),
    [
        ("", "nobody", False),
        ("none", "off", False),
        ("None", "off", False),
        ("/opt/nsys/libToolsInjection64.so", "other", True),
        ("/old/place/cuda_fork_guard_hook.so", "us", True),
    ],
)
def test_injection(value, owner, missing):
    found = tools.injection({"CUDA_INJECTION64_PATH": value})
    assert (found["owner"], found["missing"], found["path"]) == (owner, missing, value or None)


def test_tools_by_their_signs(tmp_path):
    root = str(tmp_path)
    stat_line = "%d (%s) S %d 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0 1 0 0 0 0 0 0\n"
    for pid, comm, parent in ((30, "python", 20), (20, "nsys", 10), (10, "bash", 1), (1, "init", 0)):
        put(root, f"/proc/{pid}/stat", stat_line % (pid, comm, parent))
    put(root, "/proc/30/maps", "7f-80 r-xp 0 08:01 5   /opt/my lib/libcupti.so.12\n80-81 rw-p 0 00:00 0\n")
    environ = {
        "NV_TPS_LAUNCH_TOKEN": "secret",
        "LD_PRELOAD": "/a/libother.so:/b/libsanitizer-collection.so",
        "CUDA_INJECTION64_PATH": "/opt/nsys/libToolsInjection64.so",
    }
    found = tools.tools(root, environ, "30")["others"]
    assert found == [
        {"tool": "Nsight Compute", "sign": "NV_TPS_LAUNCH_TOKEN is set"},
        {"tool": "Nsight Systems", "sign": "in CUDA_INJECTION64_PATH"},
        {"tool": "Compute Sanitizer", "sign": "in LD_PRELOAD"},
        {"tool": "CUPTI", "sign": "libcupti.so.12 is loaded here"},
        {"tool": "Nsight Systems", "sign": "its process 20 started this one"},
    ]
    assert tools.tools(str(tmp_path / "empty"), {}, "30")["others"] == []


def test_parents_that_go_in_a_circle(tmp_path):
    stat_line = "%d (x) S %d 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0 1 0 0 0 0 0 0\n"
    put(str(tmp_path), "/proc/5/stat", stat_line % (5, 6))
    put(str(tmp_path), "/proc/6/stat", stat_line % (6, 5))
    assert tools.tools(str(tmp_path), {}, "5")["others"] == []


def test_only_listed_variables_are_shown():
    environ = {"CUDA_VISIBLE_DEVICES": "0\x1b[2J\n", "AWS_SECRET_ACCESS_KEY": "x", "CUDA_TOKEN": "x", "HF_TOKEN": "x"}
    assert environment.environment(environ) == {"CUDA_VISIBLE_DEVICES": "0\\x1b[2J\\n"}


def test_versions_are_read_without_running_the_file(tmp_path):
    path = tmp_path / "version.py"
    path.write_text(
        "from typing import Optional\n__all__ = ['x']\n__version__ = '2.9.1+cu128'\ndebug = False\n"
        "cuda: Optional[str] = '12.8'\nhip: Optional[str] = None\nraise SystemExit\n"
    )
    assert torch_build.assignments(str(path)) == {"__version__": "2.9.1+cu128", "cuda": "12.8", "hip": None}
    path.write_text("def (")
    assert torch_build.assignments(str(path)) == {}
    assert torch_build.assignments(str(tmp_path / "none")) == {}


def test_start_up_line(tmp_path):
    folders = [str(tmp_path / "a"), str(tmp_path / "b")]
    assert interpreter.start_up_line(folders, site_is_on=True)["active"] is False
    put(folders[1], "/cuda_fork_guard.pth")
    found = interpreter.start_up_line(folders, site_is_on=True)
    assert found == {"active": True, "path": f"{folders[1]}/cuda_fork_guard.pth", "reason": None}
    off = interpreter.start_up_line(folders, site_is_on=False)
    assert off["active"] is False and "python -S" in str(off["reason"])


def test_this_machine():
    found = gpu.nodes("")
    for node in found:
        assert node["device"] == stat.S_ISCHR(os.stat(str(node["path"])).st_mode)
    assert system.system()["kernel"] == os.uname().release

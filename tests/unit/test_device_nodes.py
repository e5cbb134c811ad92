"""The table of device nodes, and that the native core has the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cuda_fork_guard.device_nodes import COMMON_PREFIXES, DEVICE_NODES, device_node

SOURCE = Path(__file__).parents[2] / "csrc" / "core" / "handles.cpp"


@pytest.mark.parametrize(
    ("target", "node"),
    [
        ("/dev/nvidiactl", "/dev/nvidiactl"),
        ("/dev/nvidia15", "/dev/nvidia15"),
        ("/dev/nvidia-uvm-tools", "/dev/nvidia-uvm-tools"),
        ("/dev/nvidia-caps/nvidia-cap2", "/dev/nvidia-caps/nvidia-cap2"),
        ("/dev/dxg", "/dev/dxg"),
        ("/dev/nvmap", "/dev/nvmap"),
        ("/dev/nvhost-ctrl", "/dev/nvhost-ctrl"),
        ("/dev/nvgpu/igpu0/as", "/dev/nvgpu/igpu0/as"),
        ("/dev/nvidia0 (deleted)", "/dev/nvidia0"),
        ("(unreachable)/dev/nvidia0", "/dev/nvidia0"),
        ("/dev/nvme0n1", None),
        ("/dev/nvram", None),
        ("/dev/nvgpu", None),
        ("/dev/dxgkrnl", None),
        ("/dev/nvmapper", None),
        ("/home/dev/nvidia0", None),
        ("socket:[12]", None),
        ("", None),
    ],
)
def test_device_node(target, node):
    assert device_node(target) == node


def test_the_first_look_misses_none():
    assert all(name.startswith(COMMON_PREFIXES) for name in DEVICE_NODES)


def test_the_native_core_has_the_same_table():
    table = re.search(r"kDevices\[\] = \{(.*?)\};", SOURCE.read_text(encoding="utf-8"), re.DOTALL)
    assert table is not None
    assert tuple(re.findall(r'"([^"]+)"', table[1])) == DEVICE_NODES

"""What is declared here of the CUDA driver API, compared with the toolkit's cuda.h where that is installed."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from support.child import run
from support.driver.kinds import ROOT
from support.driver.native_libraries import compiler


def _cuda_include() -> str:
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda", "/opt/cuda", "/usr"]
    nvcc = shutil.which("nvcc")
    if nvcc is not None:
        homes.append(str(Path(nvcc).resolve().parents[1]))
    homes += [str(folder) for folder in sorted(Path("/usr/local").glob("cuda-*"))]
    for home in homes:
        if home and (Path(home) / "include" / "cuda.h").is_file():
            return str(Path(home) / "include")
    pytest.skip("no cuda.h: the CUDA toolkit is not installed")


# Every version of every function is declared then, under its exported name.
_EVERY_VERSION = "#define __CUDA_API_VERSION_INTERNAL\n#include <cuda.h>\n"


def test_simulated_drivers_prototypes(tmp_path: Path) -> None:
    """The compiler refuses a declaration that differs from an earlier one, and says where it repeats one."""
    source = tmp_path / "both.c"
    source.write_text(_EVERY_VERSION + '#include "cuda_api.h"\n')
    command = [compiler(), "-fsyntax-only", "-Wredundant-decls", f"-I{_cuda_include()}"]
    finished = run([*command, f"-I{ROOT / 'csrc' / 'sim'}", str(source)]).ok()
    repeated = set(re.findall(r"redundant redeclaration of .(cu\w+)", finished.err))
    declared = set(re.findall(r"SIM_API CUresult (cu\w+)\(", (ROOT / "csrc" / "sim" / "cuda_api.h").read_text()))
    assert repeated == declared
    assert len(declared) > 30


def test_a_wrong_prototype_would_be_seen(tmp_path: Path) -> None:
    source = tmp_path / "wrong.c"
    source.write_text(_EVERY_VERSION + "CUresult cuDeviceGetCount(long* count);\n")
    finished = run([compiler(), "-fsyntax-only", f"-I{_cuda_include()}", str(source)])
    assert finished.code != 0
    assert "conflicting types" in finished.err


# The guard calls through types of its own, which must be passed alike: same size, and pointers where pointers are.
_PASSED_ALIKE = """
#include <type_traits>
#include "core/driver_api.hpp"
template <typename A, typename B> constexpr bool alike =
    sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B> && std::is_class_v<A> == std::is_class_v<B>;
template <typename A, typename B> constexpr bool points_alike() {
    if constexpr (std::is_pointer_v<A> && !std::is_void_v<std::remove_pointer_t<A>> &&
                  !std::is_void_v<std::remove_pointer_t<B>> && !std::is_pointer_v<std::remove_pointer_t<A>>)
        return sizeof(std::remove_pointer_t<A>) == sizeof(std::remove_pointer_t<B>);
    return true;
}
template <typename A, typename B> struct same_call : std::false_type {};
template <typename R, typename... A, typename S, typename... B> struct same_call<R (*)(A...), S (*)(B...)> {
    static constexpr bool counted = sizeof...(A) == sizeof...(B);
    static constexpr bool compare() {
        if constexpr (counted)
            return alike<R, S> && (alike<A, B> && ...) && (points_alike<A, B>() && ...);
        return false;
    }
    static constexpr bool value = compare();
};
#define COMPARE(member, name, parameters) \\
    static_assert(same_call<decltype(cfg::DriverApi::member), decltype(&name)>::value, #name);
CFG_DRIVER_FUNCTIONS(COMPARE)
"""


def test_guards_prototypes(tmp_path: Path) -> None:
    compare = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compare is None:
        pytest.skip("no C++ compiler")
    command = [compare, "-std=c++17", "-fsyntax-only", f"-I{_cuda_include()}", f"-I{ROOT / 'csrc'}"]
    source = tmp_path / "guard.cpp"
    source.write_text(_EVERY_VERSION + _PASSED_ALIKE)
    run([*command, str(source)]).ok()
    source.write_text(_EVERY_VERSION + _PASSED_ALIKE + "COMPARE(device_count, cuDeviceGet, )\n")
    assert "static assertion failed" in run([*command, str(source)]).err

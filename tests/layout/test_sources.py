"""Rules that the sources keep, read off the sources."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "cuda_fork_guard"
CORE = ROOT / "csrc" / "core"
LONGEST = 250

pytestmark = pytest.mark.skipif(not PACKAGE.is_dir(), reason="the sources are not beside these tests")

BANNED = {"dataclasses", "typing", "multiprocessing", "inspect", "json", "ctypes", "torch", "numpy"}


def files(folder: Path, *endings: str) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in endings and "__pycache__" not in path.parts)


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


CORE_SOURCES = files(CORE, ".cpp", ".hpp", ".S")
C_SOURCES = files(ROOT / "csrc", ".c", ".h", ".cpp", ".hpp", ".inc", ".S")
PYTHON = files(PACKAGE, ".py", ".pyi")
TESTS = files(ROOT / "tests", ".py", ".c", ".cpp", ".hpp")
ALL = [*C_SOURCES, *PYTHON, *TESTS, *files(ROOT / "benchmarks", ".py"), *files(ROOT / "scripts", ".py", ".sh", "")]


def test_the_sources_were_found() -> None:
    assert len(CORE_SOURCES) > 20 and len(PYTHON) > 20 and len(TESTS) > 20


def test_the_core_is_free_of_python_and_of_what_allocates_behind_its_back() -> None:
    allocating = {
        "iostream",
        "ostream",
        "sstream",
        "fstream",
        "string",
        "vector",
        "map",
        "mutex",
        "thread",
        "functional",
    }
    for path in CORE_SOURCES:
        text = path.read_text(encoding="utf-8")
        included = re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', text, re.MULTILINE)
        assert not [
            name for name in included if re.search(r"(^|/)(Python|pybind11|bind/)|(^|/)(frame|py\w+)\.h$", name)
        ]
        assert not allocating & set(included), relative(path)
        assert not re.search(r"\bPy[A-Z]\w*\(", code_of(path)), f"{relative(path)} calls Python"


def test_a_file_fits_a_sitting() -> None:
    lengths = {
        relative(path): len(path.read_text(encoding="utf-8").splitlines()) for path in ALL if path.suffix != ".inc"
    }
    assert {path: length for path, length in lengths.items() if length > LONGEST} == {}


def imports_at_import(path: Path) -> Iterator[str]:
    """What importing the module imports: not inside functions, nor under TYPE_CHECKING."""
    pending: list[ast.stmt] = list(ast.parse(path.read_text(encoding="utf-8")).body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If):
            if not (isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
                pending += [*node.body, *node.orelse]
        elif isinstance(node, ast.Try):
            pending += [*node.body, *node.orelse, *node.finalbody, *(one for h in node.handlers for one in h.body)]
        elif isinstance(node, ast.ClassDef):
            pending += node.body
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:
                folder = path.parents[node.level - 1]
                base = ".".join(folder.relative_to(ROOT).parts)
                module = f"{base}.{module}".rstrip(".")
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def file_of(module: str) -> Path | None:
    path = ROOT.joinpath(*module.split("."))
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


def test_the_import_path_has_no_banned_module() -> None:
    seen: set[Path] = set()
    pending = [PACKAGE / "__init__.py"]
    while pending:
        path = pending.pop()
        if path in seen:
            continue
        seen.add(path)
        for name in imports_at_import(path):
            assert name.partition(".")[0] not in BANNED, f"{relative(path)} imports {name}"
            target = file_of(name) if name.startswith("cuda_fork_guard") else None
            if target is not None:
                pending.append(target)
    assert len(seen) > 15
    assert not any({"cli", "testing", "forkserver"} & set(path.relative_to(PACKAGE).parts) for path in seen)


# Spelled so that this file keeps its own rule.
MACHINE = ["/" + "work/", "/" + "root/", "/" + "root\\b", "py" + "pi\\.org", "python" + "hosted", "deb\\.debian\\.org"]


def test_no_machine_and_no_host_is_named() -> None:
    foreign = {".venv", "build", ".git", ".cache", ".pytest_cache", "dist", "node_modules"}
    texts = [
        path for path in files(ROOT, ".md", ".toml", ".txt", ".yml") if not foreign & set(path.relative_to(ROOT).parts)
    ]
    for path in (*ALL, *texts):
        text = path.read_text(encoding="utf-8")
        assert [pattern for pattern in MACHINE if re.search(pattern, text)] == [], relative(path)


def code_of(path: Path) -> str:
    """The source without its comments."""
    text = path.read_text(encoding="utf-8")
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)


def test_each_driver_function_is_declared_and_looked_up_in_one_table() -> None:
    table = re.findall(r"X\(\w+, (cu\w+),", (CORE / "driver_api.hpp").read_text(encoding="utf-8"))
    assert len(table) == len(set(table)) > 10
    for path in files(ROOT / "csrc" / "bind", ".cpp", ".hpp") + CORE_SOURCES:
        if path.name == "driver_api.hpp":
            continue
        assert not re.search(r'dlsym\([^)]*"cu[A-Z]', code_of(path)), f"{relative(path)} looks one up by itself"
    # The proof names each step for its message: by the names of the table.
    steps = re.findall(r'step\("(cu\w+)"', code_of(CORE / "context_proof.cpp"))
    assert steps and set(steps) <= set(table)


def test_each_result_code_of_the_driver_is_named_in_one_table() -> None:
    named = [relative(path) for path in PYTHON if re.search(r"CUDA_ERROR_|NOT_INITIALIZED\"", path.read_text("utf-8"))]
    assert named == ["cuda_fork_guard/codes.py"]
    numbers = [path for path in CORE_SOURCES if re.search(r"CuResult k\w+ = \d", path.read_text("utf-8"))]
    assert [path.name for path in numbers] == ["driver_api.hpp"]


def test_each_code_of_the_guard_s_own_is_in_the_table_of_errors() -> None:
    """CFG1xx to 4xx are errors.py's; CFG5xx are doctor's hazards, and CFG102 is the touch report's."""
    table = set(re.findall(r"CFG\d{3}", (PACKAGE / "errors.py").read_text(encoding="utf-8"))) | {"CFG102"}
    for path in [*PYTHON, *C_SOURCES]:
        used = set(re.findall(r"CFG[0-4]\d{2}", path.read_text(encoding="utf-8")))
        assert used <= table, f"{relative(path)}: {sorted(used - table)}"


def test_each_variable_of_the_guard_s_own_is_spelled_in_one_module() -> None:
    spelled: dict[str, list[str]] = defaultdict(list)
    for path in PYTHON:
        if path.parent.name == "facts":
            continue  # doctor's list of what it shows, its own and others'
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            value = node.value if isinstance(node, ast.Constant) else None
            if isinstance(value, str) and re.fullmatch(r"CUDA_(FORK_GUARD\w*|INJECTION64_PATH)", value):
                spelled[value].append(relative(path))
    assert {name: sorted(set(paths)) for name, paths in spelled.items()} == {
        "CUDA_FORK_GUARD": ["cuda_fork_guard/policies.py"],
        "CUDA_FORK_GUARD_SIM": ["cuda_fork_guard/testing/simulation.py"],
        "CUDA_INJECTION64_PATH": ["cuda_fork_guard/waking.py"],
    }


def test_tables_of_numbers_agree_between_python_and_the_core() -> None:
    from cuda_fork_guard import decision, event_log, evidence, policies

    def enum(file: str, name: str) -> list[str]:
        body = re.search(rf"enum class {name} : [\w:]+ \{{(.*?)\}}", code_of(CORE / file), re.DOTALL)
        assert body is not None, name
        return [re.sub(r"\s*=.*", "", one).strip() for one in body.group(1).split(",") if one.strip()]

    assert enum("ring.hpp", "EventKind") == list(event_log.KINDS)
    assert enum("fork_state.hpp", "Policy") == list(policies.POLICIES)
    assert enum("tripwire.hpp", "State") == list(evidence.TRIPWIRE_STATES)
    assert enum("fork_state.hpp", "DriverKnown") == ["down", "tried", "up"]
    assert (evidence.DOWN, evidence.TRIED, evidence.UP) == (0, 1, 2)
    assert enum("fork_state.hpp", "Inherited") == ["no", "yes", "unknown"]
    assert (evidence.NO, evidence.YES, evidence.UNKNOWN) == (0, 1, 2)
    uses = enum("fork_intent.hpp", "ForkUse")
    assert uses == ["unknown", "exec", "allowed", "quiet", "forkserver"]
    assert uses.index("forkserver") == decision.USE_FORKSERVER and uses.index("exec") == decision.USE_EXEC

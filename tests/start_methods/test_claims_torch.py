"""What people say about DataLoader, torch and start methods, each measured. A row each in docs/start-methods.md."""

from __future__ import annotations

import sys

import pytest
from support.program import Program

pytest.importorskip("torch")
pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="measured on Linux"),
]

LOADER = """
import multiprocessing, os
import cuda_fork_guard as guard
import use_driver
from torch.utils.data import DataLoader, Dataset
class Plain(Dataset):
    def __len__(self): return 4
    def __getitem__(self, index): return index
class Waking(Plain):
    def __getitem__(self, index): return use_driver.wake()
def answers(dataset, context):
    loader = DataLoader(dataset, num_workers=2, multiprocessing_context=context)
    return sorted({int(item) for batch in loader for item in batch})
"""


@pytest.mark.parametrize("context", ["'fork'", "'spawn'", "'forkserver'", "guard.get_context()", "None"])
def test_claim_data_loader_supports_fork_spawn_forkserver(program: Program, context: str) -> None:
    code = LOADER + f"if __name__ == '__main__': print(answers(Plain(), {context}))\n"
    assert program(code, limit=100).ok().out == "[0, 1, 2, 3]\n"


def test_claim_data_loader_takes_a_name_or_a_context(program: Program) -> None:
    code = LOADER + (
        """
for wrong in ("x", multiprocessing, 3):
    try:
        DataLoader(Plain(), num_workers=2, multiprocessing_context=wrong)
    except (TypeError, ValueError) as error:
        print(type(error).__name__)
"""
    )
    assert program(code).ok().lines == ["ValueError", "TypeError", "TypeError"]


def test_claim_none_means_the_process_default(program: Program) -> None:
    code = LOADER + (
        """
class Method(Plain):
    def __getitem__(self, index): return ("fork", "forkserver", "spawn").index(guard.verify_worker("cpu-only").start_method)
if __name__ == "__main__":
    first = answers(Method(), None)
    multiprocessing.set_start_method("spawn", force=True)
    print(first, answers(Method(), None))
"""
    )
    assert program(code, limit=100).ok().out == f"[{1 if sys.version_info >= (3, 14) else 0}] [2]\n"


def test_claim_set_it_before_importing_torch(program: Program) -> None:
    """Importing torch fixes no method and calls no cuInit."""
    code = """
    import multiprocessing
    import cuda_fork_guard as guard
    import torch, torch.multiprocessing, torch.utils.data
    assert guard.status().driver in ("absent", "loaded") and guard.status().origin is None
    multiprocessing.set_start_method("spawn")
    """
    program(code).ok()


def test_claim_torch_multiprocessing_has_a_default_of_its_own(program: Program) -> None:
    """No: its functions are multiprocessing's, bound to the same default."""
    code = """
    import multiprocessing, torch.multiprocessing
    multiprocessing.set_start_method("spawn")
    print(torch.multiprocessing.get_start_method(allow_none=True))
    """
    assert program(code).ok().out == "spawn\n"


@pytest.mark.parametrize(
    ("act", "fixes"),
    [
        ("DataLoader(Plain(), num_workers=2)", False),
        ("list(DataLoader(Plain(), num_workers=0))", False),
        ("list(DataLoader(Plain(), num_workers=2))", True),
        ("list(DataLoader(Plain(), num_workers=2, multiprocessing_context='spawn'))", sys.version_info < (3, 14)),
        ("list(DataLoader(Plain(), num_workers=2, multiprocessing_context=guard.get_context()))", False),
        ("__import__('torch').zeros(2).share_memory_()", False),
    ],
)
def test_claim_a_loader_fixes_the_default(program: Program, act: str, fixes: bool) -> None:
    code = LOADER + (
        f"""
if __name__ == "__main__":
    {act}
    print(multiprocessing.get_start_method(allow_none=True) is not None)
"""
    )
    assert program(code, limit=100).ok().out == f"{fixes}\n"


@pytest.mark.parametrize(("context", "expected"), [("'fork'", [3]), ("'spawn'", [0]), ("guard.get_context()", [0])])
def test_claim_each_worker_can_use_cuda_in_getitem(program: Program, context: str, expected: list[int]) -> None:
    """With spawn or a clean forkserver; what cuInit answers in the worker, with CUDA up in the program."""
    code = LOADER + (
        f"""
if __name__ == "__main__":
    assert use_driver.wake() == 0
    print(answers(Waking(), {context}))
"""
    )
    assert program(code, limit=100).ok(riddles=True).out == f"{expected}\n"


def test_claim_each_worker_pays_for_a_context_of_its_own(program: Program) -> None:
    code = LOADER + (
        """
class Context(Plain):
    def __getitem__(self, index):
        use_driver.library()
        report = guard.verify_worker("fresh", device=0)
        assert report.driver == "active" and not report.inherited
        return report.pid
if __name__ == "__main__":
    print(len(answers(Context(), guard.get_context())))
"""
    )
    assert program(code, limit=100).ok().out == "2\n"

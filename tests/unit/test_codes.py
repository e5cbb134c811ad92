from __future__ import annotations

import pytest

from cuda_fork_guard import codes


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (0, "0 (CUDA_SUCCESS)"),
        (3, "3 (CUDA_ERROR_NOT_INITIALIZED)"),
        (999, "999 (CUDA_ERROR_UNKNOWN)"),
        (12345, "12345"),
        (-1, "-1"),
    ],
)
def test_a_code_by_its_name(code: int, text: str) -> None:
    assert codes.describe(code) == text

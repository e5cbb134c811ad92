"""The errors cross process boundaries: DataLoader re-raises ``type(text)``, pools pickle, executors chain."""

from __future__ import annotations

import inspect
import pickle

import pytest

import cuda_fork_guard
from cuda_fork_guard import errors

CLASSES = [
    value
    for value in vars(errors).values()
    if inspect.isclass(value) and issubclass(value, (errors.CudaForkGuardError, errors.CudaForkGuardWarning))
]

CODES = {
    "UnsafeForkError": "CFG101",
    "UnsafeForkWarning": "CFG101",
    "InheritedCudaError": "CFG201",
    "WorkerNotCleanError": "CFG202",
    "WrongDeviceError": "CFG203",
    "DriverUnavailableError": "CFG204",
    "StartMethodError": "CFG301",
    "ForkServerNotCleanError": "CFG302",
    "CudaInitializedError": "CFG401",
}
TEXT = "[CFG999] first line\n  woken:   train.py:12 in main"


def test_every_name_of_the_contract_is_public() -> None:
    for name in (*CODES, "CudaForkGuardError", "CudaForkGuardWarning", "WorkerError"):
        assert getattr(cuda_fork_guard, name) is getattr(errors, name)
        assert name in cuda_fork_guard.__all__


@pytest.mark.parametrize(("name", "code"), CODES.items())
def test_the_documentation_of_each_names_its_code(name: str, code: str) -> None:
    assert f"[{code}]" in (getattr(errors, name).__doc__ or "")


@pytest.mark.parametrize("kind", CLASSES)
def test_one_string_that_survives(kind: type[Exception]) -> None:
    error = kind(TEXT)
    assert str(error) == TEXT and error.args == (TEXT,)
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is kind and str(back) == TEXT


@pytest.mark.parametrize("kind", CLASSES)
def test_reraised_as_dataloader_does_it(kind: type[Exception]) -> None:
    # torch._utils.ExceptionWrapper.reraise: an attribute `message` would get the text as a keyword.
    assert getattr(kind, "message", None) is None
    assert not hasattr(kind(TEXT), "message")
    text = f"Caught {kind.__name__} in DataLoader worker process 0.\n{TEXT}"
    again = kind(text)
    assert type(again) is kind and TEXT in str(again)


@pytest.mark.parametrize("kind", CLASSES)
def test_importable_where_it_is_pickled_from(kind: type[Exception]) -> None:
    assert kind.__qualname__ == kind.__name__
    assert getattr(errors, kind.__name__) is kind and kind.__module__ == "cuda_fork_guard.errors"


def test_the_family() -> None:
    assert issubclass(errors.CudaForkGuardError, RuntimeError)
    assert issubclass(errors.CudaForkGuardWarning, RuntimeWarning)
    assert not issubclass(errors.CudaForkGuardWarning, errors.CudaForkGuardError)
    worker = (
        errors.InheritedCudaError, errors.WorkerNotCleanError, errors.WrongDeviceError, errors.DriverUnavailableError
    )  # fmt: skip
    assert all(issubclass(kind, errors.WorkerError) for kind in worker)
    assert issubclass(errors.StartMethodError, ValueError)
    assert issubclass(errors.ForkServerNotCleanError, errors.StartMethodError)
    assert issubclass(errors.UnsafeForkWarning, errors.CudaForkGuardWarning)

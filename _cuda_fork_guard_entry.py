"""What runs before anybody asks for the guard: the start-up check and pytest's entry point.

In a module of its own, outside the package, since importing anything inside the package imports the whole guard: a
process or a pytest run that does not ask for it has neither `cuda_fork_guard` nor its native module loaded.

PYTEST_DONT_REWRITE: it may be there before pytest is, and pytest would warn that it came too late for its assertions.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    import pytest

# In a virtual environment `site` runs each .pth line twice.
_started = False


def start() -> None:
    """Called by `cuda_fork_guard.pth` in every Python process for which CUDA_FORK_GUARD is set and not empty.

    The policy is read by the package's import, which installs the guard. The program comes first: whatever fails here
    is told in one line, and the program goes on as if the variable were not set.
    """
    global _started
    if _started:
        return
    _started = True
    try:
        import cuda_fork_guard  # noqa: F401
    except Exception as error:
        _complain(error)


def _complain(error: Exception) -> None:
    import sys

    text = " ".join(f"{type(error).__name__}: {error}".split())
    try:
        sys.stderr.write(f"cuda_fork_guard: CUDA_FORK_GUARD is set, but this process is not guarded: {text}\n")
    except Exception:
        return  # no stderr to tell it on


def __getattr__(name: str) -> object:
    # The entry point names `pytest_plugin`. Built on demand: at start-up nobody may import pytest.
    if name == "pytest_plugin":
        return _pytest_plugin()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _pytest_plugin() -> object:
    import pytest

    class CudaForkGuardEntry:
        def pytest_addoption(self, parser: pytest.Parser) -> None:
            parser.getgroup("cuda_fork_guard").addoption(
                "--cuda-fork-guard",
                choices=("warn", "block"),
                default=None,
                help="fail tests that fork unsafely after CUDA is up, or whose children use CUDA; "
                "and a collection that wakes CUDA",
            )

        # As early as an option is known: a conftest may already wake CUDA, and the guard must be there first.
        @pytest.hookimpl(tryfirst=True)
        def pytest_load_initial_conftests(self, early_config: pytest.Config) -> None:
            policy = early_config.known_args_namespace.cuda_fork_guard
            if policy is not None:
                from cuda_fork_guard import pytest_plugin

                pytest_plugin.register(early_config, policy)

        @pytest.fixture
        def no_cuda_init(self) -> Iterator[None]:
            """Fails the test, with the origin, if anything in it calls cuInit."""
            import cuda_fork_guard

            with cuda_fork_guard.no_cuda_init():
                yield

        @pytest.fixture
        def simulated_cuda(self, request: pytest.FixtureRequest) -> Iterator[Any]:
            """A simulated driver, up for the test. Indirect parameters are `simulated_cuda`'s arguments."""
            from cuda_fork_guard.testing import simulated_cuda

            with simulated_cuda(**getattr(request, "param", {})) as driver:
                yield driver

    return CudaForkGuardEntry()

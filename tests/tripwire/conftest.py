from __future__ import annotations

from pathlib import Path

import pytest
from support import tripwire


@pytest.fixture(scope="session")
def programs() -> tripwire.Programs:
    return tripwire.build(tripwire.system_compiler())


def _find(kind: str, programs: tripwire.Programs) -> Path:
    if kind == "fake":
        return programs.fake
    if kind == "simulated":
        return tripwire.simulated_driver()
    return tripwire.real_driver(kind)


@pytest.fixture(params=["fake", "simulated", *tripwire.MAJORS])
def library(request: pytest.FixtureRequest, programs: tripwire.Programs) -> Path:
    """Every libcuda there is."""
    return _find(request.param, programs)


@pytest.fixture(params=["simulated", *tripwire.MAJORS])
def whole_driver(request: pytest.FixtureRequest, programs: tripwire.Programs) -> Path:
    """Those with all functions of the driver API and no others."""
    return _find(request.param, programs)


@pytest.fixture
def a_real_library(programs: tripwire.Programs) -> Path:
    """The newest real one that is there; where there is none the fake one serves."""
    del programs
    for major in reversed(tripwire.MAJORS):
        path = tripwire.DRIVERS / major / "libcuda.so.1"
        if path.is_file():
            return path
    pytest.skip(f"no real driver in {tripwire.DRIVERS}")

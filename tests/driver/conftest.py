"""Which drivers a check is run against."""

from __future__ import annotations

import pytest
from support.driver import native_libraries
from support.driver.kinds import MAJORS, Driver, kinds, make


@pytest.fixture(params=kinds("sim0", "sim2", *MAJORS, "gpu"))
def driver(request: pytest.FixtureRequest) -> Driver:
    """Any driver: for what holds before cuInit, device or not."""
    return make(request.param)


@pytest.fixture(params=kinds("sim0", *MAJORS))
def driver_without_gpu(request: pytest.FixtureRequest) -> Driver:
    return make(request.param)


@pytest.fixture(params=kinds("sim2", "gpu"))
def driver_with_gpu(request: pytest.FixtureRequest) -> Driver:
    return make(request.param)


@pytest.fixture(params=kinds(*MAJORS))
def real_driver(request: pytest.FixtureRequest) -> Driver:
    return make(request.param)


@pytest.fixture(scope="session")
def hook(tmp_path_factory: pytest.TempPathFactory) -> str:
    return native_libraries.build("hook", tmp_path_factory.mktemp("hook"))

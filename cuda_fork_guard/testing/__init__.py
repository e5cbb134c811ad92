"""For tests of programs that use CUDA: a simulated driver, so that they run without a GPU."""

from __future__ import annotations

from cuda_fork_guard.testing.simulation import SimulatedCuda, driver_folder, simulated_cuda

__all__ = ["SimulatedCuda", "driver_folder", "simulated_cuda"]

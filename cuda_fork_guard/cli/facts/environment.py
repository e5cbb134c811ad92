"""Variables that matter to CUDA, fork and start methods. No other one is ever shown: any may hold a secret."""

from __future__ import annotations

import os
from collections.abc import Mapping

from cuda_fork_guard.procfs import text

SHOWN = (
    "CUDA_FORK_GUARD",
    "CUDA_INJECTION64_PATH",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "CUDA_MPS_PIPE_DIRECTORY",
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
    "CUDA_HOME",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "PYTORCH_NVML_BASED_CUDA_CHECK",
    "PYTORCH_CUDA_ALLOC_CONF",
    "TORCHINDUCTOR_COMPILE_THREADS",
    "TORCHINDUCTOR_WORKER_START",
    "VLLM_WORKER_MULTIPROC_METHOD",
    "JOBLIB_START_METHOD",
    "JOBLIB_MULTIPROCESSING",
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "OMP_NUM_THREADS",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONWARNINGS",
    "PYTHONFAULTHANDLER",
    "PYTHONNOUSERSITE",
)


def environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    return {name: text(os.fsencode(environ[name])) for name in SHOWN if name in environ}

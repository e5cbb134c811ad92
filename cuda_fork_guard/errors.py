"""Every error and warning of the guard.

They cross process boundaries: DataLoader re-raises a worker's exception as ``type(text)``, pools pickle it. So each takes
one string that carries everything, and has no attribute ``message`` (DataLoader would pass the text as a keyword).
Each text begins with the code that its documentation page is named after.
"""

from __future__ import annotations


class CudaForkGuardError(RuntimeError):
    """Base of all errors of the guard. [CFG402]: ``no_cuda_init`` can't prove anything where the hook's place is taken."""


class UnsafeForkError(CudaForkGuardError):
    """[CFG101] A fork was refused, because CUDA is up in this process and the policy is ``block``. No process was made."""


class WorkerError(CudaForkGuardError):
    """``verify_worker`` found that this process is not what was expected. [CFG205]: its inherited device handles can't be
    released. [CFG206]: ``verify_loader`` found that a worker ended, or can't be verified."""


class InheritedCudaError(WorkerError):
    """[CFG201] This process was forked from one in which CUDA was up: CUDA can't work here."""


class WorkerNotCleanError(WorkerError):
    """[CFG202] CUDA was already initialized in this process by its own code."""


class WrongDeviceError(WorkerError):
    """[CFG203] A context is active on another device than the one this worker was given."""


class NoSuchDeviceError(WrongDeviceError, ValueError):
    """[CFG203] The device asked for is not among those this process sees. Also a bad argument, so a ``ValueError``."""


class DriverUnavailableError(WorkerError):
    """[CFG204] There is no driver to bring a context up with, or it refused; the text names the call and its code."""


class StartMethodError(CudaForkGuardError, ValueError):
    """[CFG301] The start method asked for can't be had (any more) in this process."""


class ForkServerNotCleanError(StartMethodError):
    """[CFG302] The forkserver has CUDA up (a preloaded module woke it), so every worker forked from it is broken."""


class CudaInitializedError(CudaForkGuardError):
    """[CFG401] ``cuInit`` was called where ``no_cuda_init`` forbids it."""


class CudaForkGuardWarning(RuntimeWarning):
    """Base of all warnings of the guard."""


class UnsafeForkWarning(CudaForkGuardWarning):
    """[CFG101] A fork while CUDA is up, under the policy ``warn``: harmless only if the child never uses CUDA."""

"""For programs that use PyTorch: every worker of a ``DataLoader`` and every rank of a job, verified and shown.

What knows torch is in this folder's ``torch*.py``, and nowhere else in the package.
"""

from __future__ import annotations

from cuda_fork_guard.integrations.report_table import WorkerReports
from cuda_fork_guard.integrations.torch_loader import verify_loader
from cuda_fork_guard.integrations.torch_ranks import RankReport, RankReports, verify_ranks

__all__ = ["RankReport", "RankReports", "WorkerReports", "verify_loader", "verify_ranks"]

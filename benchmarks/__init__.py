"""What the guard costs: ``python -m benchmarks`` prints one table of ratios. No test is timed anywhere else."""

from __future__ import annotations

"""``python -m benchmarks``: what the guard costs, in one table."""

from __future__ import annotations

import argparse
import importlib
import platform
import sys

from .table import Row, rendered

# Each module has measure(pairs) -> list[Row].
QUESTIONS = ("fork_cost", "import_cost", "status_cost", "audit_cost")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("questions", nargs="*", choices=[[], *QUESTIONS], metavar="QUESTION", help=", ".join(QUESTIONS))
    parser.add_argument("--pairs", type=int, default=2_000, help="paired samples of each (default: %(default)s)")
    options = parser.parse_args()
    rows: list[Row] = []
    for name in options.questions or QUESTIONS:
        print(f"{name} …", file=sys.stderr, flush=True)
        rows += importlib.import_module(f"benchmarks.{name}").measure(options.pairs)
    print(
        f"CPython {platform.python_version()}, Linux {platform.release()}, {options.pairs} pairs; no test depends on these."
    )
    print(rendered(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())

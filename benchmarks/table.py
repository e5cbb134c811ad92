"""One row per question, and how the rows are printed."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

HEADINGS = ("question", "without", "with", "added", "ratio", "off/off", "goal", "")


@dataclass(frozen=True)
class Row:
    """``noise``: the ratio of the same thing against itself, measured the same way."""

    question: str
    without: str = ""
    with_guard: str = ""
    added: str = ""
    ratio: str = ""
    noise: str = ""
    goal: str = ""
    met: bool | None = None

    def cells(self) -> tuple[str, ...]:
        verdict = {None: "", True: "met", False: "MISSED"}[self.met]
        return (
            self.question,
            self.without,
            self.with_guard,
            self.added,
            self.ratio,
            self.noise,
            self.goal,
            verdict,
        )


@dataclass(frozen=True)
class Pairs:
    """Paired samples in nanoseconds: the n-th of each were taken one right after the other."""

    off: Sequence[float]
    on: Sequence[float]

    def added(self) -> float:
        """The median of the differences: a burst of noise hits both of a pair, and a few pairs move it little."""
        return statistics.median(on - off for off, on in zip(self.off, self.on, strict=True))

    def spread(self) -> float:
        """Half of the range that holds the middle half of the differences."""
        low, _, high = statistics.quantiles((on - off for off, on in zip(self.off, self.on, strict=True)), n=4)
        return (high - low) / 2

    def ratio(self) -> float:
        return statistics.median(self.on) / statistics.median(self.off)


def row(question: str, pairs: Pairs, noise: Pairs, *, most: float | None = None) -> Row:
    """:param most: the goal: so many nanoseconds may be added."""
    return Row(
        question,
        without=duration(statistics.median(pairs.off)),
        with_guard=duration(statistics.median(pairs.on)),
        added=f"{duration(pairs.added())} ± {duration(pairs.spread())}",
        ratio=f"{pairs.ratio():.2f}",
        noise=f"{noise.ratio():.2f}",
        goal="" if most is None else f"≤ {duration(most)} more",
        met=None if most is None else pairs.added() <= most,
    )


def duration(nanoseconds: float) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if abs(nanoseconds) >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.0f} ns" if abs(nanoseconds) >= 10 else f"{nanoseconds:.1f} ns"


def rendered(rows: Sequence[Row]) -> str:
    """A table that reads both on a terminal and as Markdown."""
    cells = [HEADINGS, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEADINGS))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in cells
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)

"""What an experiment is: what the paper says, how large it is here, what must hold, and how it is run.

    EXPERIMENT = Experiment(id="X16", ..., bars=(at_most("times", 2),), run=run)

A bar is a ratio within one run, so it means the same on any machine. `memory(scale)` is an estimate of the bytes
that the process will hold at its peak: asked before anything is made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kpg.bench.run import Run

SERVER = "4 x Intel Xeon E5-4650 v2, 40 cores, 512 GB"
LAPTOP = "a laptop with 16 GB"
THESIS_I5 = "one core of a 2.7 GHz Core i5, 16 GB"
THESIS_I7 = "one core of a 3.4 GHz Core i7, 64 GB"


@dataclass(frozen=True, slots=True)
class Printed:
    """A figure that a paper prints, with what it was measured on."""

    what: str
    value: str
    hardware: str = SERVER


@dataclass(frozen=True, slots=True)
class Bar:
    """A limit on one figure of a run."""

    figure: str
    limit: float
    least: bool = False

    def met(self, value: float) -> bool:
        """Whether a figure keeps the limit."""
        return value >= self.limit if self.least else value <= self.limit

    def __str__(self) -> str:
        return f"{self.figure} {'at least' if self.least else 'at most'} {self.limit:g}"


def at_most(figure: str, limit: float) -> Bar:
    """The figure may not exceed this."""
    return Bar(figure, limit)


def at_least(figure: str, limit: float) -> Bar:
    """The figure may not fall below this."""
    return Bar(figure, limit, least=True)


@dataclass(frozen=True, slots=True)
class Reads:
    """What `--data` may give an experiment in place of what it generates."""

    what: str  # in words
    rows: int  # that it generates at scale 1, to know what scale a file is like
    tables: tuple[str, ...] = ()  # of a directory of LDBC, those that are read


def snap(rows: int) -> Reads:
    """An edge list."""
    return Reads("an edge list of SNAP", rows)


def graspan(rows: int, labels: str) -> Reads:
    """The edges of a program."""
    return Reads(f"edges of Graspan, with labels {labels}", rows)


def ldbc(rows: int, *tables: str) -> Reads:
    """A directory of csv files."""
    return Reads("a directory of LDBC's csv files", rows, tables)


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment of the papers."""

    id: str
    title: str
    paper: str  # which figure or table of which paper
    claim: str  # what the paper shows with it
    size: str  # what scale 1 is here, and which scale is the paper's
    printed: tuple[Printed, ...]
    memory: Callable[[float], int]  # bytes at a scale, estimated
    run: Callable[[Run], None]
    bars: tuple[Bar, ...] = ()
    peers: tuple[str, ...] = ()
    reads: Reads | None = None

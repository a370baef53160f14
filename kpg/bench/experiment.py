"""The declaration of an experiment: its size, its limits, the memory it needs, and the function that runs it.

    EXPERIMENT = Experiment(id="X16", ..., limits=(at_most("times", 2),), run=run)

Two kinds of limits exist. An experiment of a paper declares limits on ratios within one run; such a limit means the
same on every machine. An engine experiment passes limits with each row that it reports, and those on seconds,
milliseconds and rates are scaled by the speed of the machine (see `Limit.on`).

`memory(scale)` estimates the peak memory of the process in bytes. The runner asks for it before it creates any data.
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

PAPERS_REHEARSAL_SCALE = 0.0005  # large enough to run every code path once, small enough to take about a second
ENGINE_REHEARSAL_SCALE = 0.002
DURATIONS = {"seconds", "p50_ms", "p99_ms"}  # figures that grow on a slower machine
RATES = {"rows_per_second"}  # figures that shrink on a slower machine


@dataclass(frozen=True, slots=True)
class PaperFigure:
    """A figure that a paper prints, with the hardware it was measured on."""

    what: str
    value: str
    hardware: str = SERVER


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit on one figure of a row or of a run."""

    figure: str
    limit: float
    least: bool = False
    on_any_machine: bool = False  # whether the limit is for this machine already

    def on(self, slowdown: float) -> float:
        """Return the limit on a machine that is `slowdown` times slower than the one it was set for.

        Limits on ratios and bytes do not depend on the machine.
        """
        if self.on_any_machine:
            return self.limit
        if self.figure in DURATIONS:
            return self.limit * slowdown
        return self.limit / slowdown if self.figure in RATES else self.limit

    def excess(self, value: float, slowdown: float = 1.0) -> float:
        """Return how many times worse than the limit a value is; a value of at most 1 meets it."""
        limit = self.on(slowdown)
        if limit == 0:
            return 1 + value  # the limit allows none at all
        return limit / value if self.least else value / limit

    def is_met(self, value: float) -> bool:
        """Return whether a figure keeps the limit, on any machine."""
        return value >= self.limit if self.least else value <= self.limit

    def __str__(self) -> str:
        return f"{self.figure} {'at least' if self.least else 'at most'} {self.limit:g}"


def at_most(figure: str, limit: float, *, on_any_machine: bool = False) -> Limit:
    """Return an upper limit."""
    return Limit(figure, limit, on_any_machine=on_any_machine)


def at_least(figure: str, limit: float) -> Limit:
    """Return a lower limit."""
    return Limit(figure, limit, least=True)


@dataclass(frozen=True, slots=True)
class FileInput:
    """The kind of file that `--data` may give an experiment in place of generated data."""

    what: str  # in words
    rows: int  # generated at scale 1; a file with as many rows needs as much memory
    tables: tuple[str, ...] = ()  # the tables that are read from a directory of LDBC


def snap(rows: int) -> FileInput:
    """Return the input kind of an edge list."""
    return FileInput("an edge list of SNAP", rows)


def graspan(rows: int, labels: str) -> FileInput:
    """Return the input kind of a program's labelled edges."""
    return FileInput(f"edges of Graspan, with labels {labels}", rows)


def ldbc(rows: int, *tables: str) -> FileInput:
    """Return the input kind of a directory of csv files."""
    return FileInput("a directory of LDBC's csv files", rows, tables)


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment. Its module's docstring begins with its question (`registry.question`)."""

    id: str
    title: str
    size: str  # at scale 1; for an experiment of a paper, also the scale of the paper
    memory: Callable[[float], int]  # estimated bytes at a scale
    run: Callable[[Run], None]
    paper: str = ""  # the figure or table of the paper that this experiment repeats
    claim: str = ""  # the paper's conclusion
    printed: tuple[PaperFigure, ...] = ()
    limits: tuple[Limit, ...] = ()  # on figures of the whole run
    peers: tuple[str, ...] = ()
    reads: FileInput | None = None
    rehearsal_scale: float = PAPERS_REHEARSAL_SCALE

    @property
    def family(self) -> str:
        """The letter of the id: E, O, Q, S or X."""
        return self.id[0]


def engine_experiment(
    id: str,
    title: str,
    size: str,
    memory: Callable[[float], int],
    run: Callable[[Run], None],
    peers: tuple[str, ...] = (),
) -> Experiment:
    """Declare an experiment of our own (E, O, Q, S): it has no paper, and its limits come with its rows."""
    return Experiment(id, title, size, memory, run, peers=peers, rehearsal_scale=ENGINE_REHEARSAL_SCALE)

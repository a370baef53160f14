"""The interface between an experiment and the runner: sizes, checks, peers, and the rows that it reports.

    run.size(10_000_000)                     rows at this scale
    run.progress("loading", done, of)        show how far the experiment is
    run.check(rows == expected, "...")       stop if an answer is wrong: no figure without its answer checked
    run.report("load", "at most 3 times np.sort", [at_most("ratio", 3)], reference, seconds=...)
    run.record("shared", p50_ms=...)         a row without reference and limits
    run.figure("times", 1.3)                 a figure of the whole run, for the experiment's own limits
    run.latencies("shared", seconds)         a row of percentiles, and a curve of the complementary CDF
    run.line("memory", "shared", points)     a line of another picture
    run.ask("duckdb", function)              the answer of a peer; None if it is not installed or not wanted

Each row is saved when it is reported, so an interrupted or killed run keeps all rows before that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from kpg.bench.experiment import Limit
from kpg.bench.machine import peer_version
from kpg.bench.measure import USUAL_SORT_SECONDS, Stopwatch, latency_summary
from kpg.bench.results import SORT_SECONDS, Plot, Result, curve
from kpg.errors import WrongAnswer

Progress = Callable[[str, int, int], None]  # activity, steps done, steps in all
Kind = Literal["measurement", "rehearsal", "profile"]
Figures = dict[str, Any]
Answer = TypeVar("Answer")

REHEARSAL_ROUNDS = 3  # enough to run every code path of a round
PROFILE_ROUNDS = 200  # enough samples for a profile
PATHWAY_ROWS = 1_000_000  # more would take Pathway hours
PEER_ERROR_CHARACTERS = 200  # of a peer's error message in a note


class PeerAbsent(Exception):
    """The peer is not installed on this machine; the text says what is missing."""


class PeerTimeout(Exception):
    """The peer was stopped; the text says after how many seconds."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Another system or program that did the same work in the same run."""

    name: str
    seconds: float | None
    rows: int | None = None  # if it did fewer rows than kpg: then the ratio is per row
    note: str | None = None


def show_nothing(activity: str, done: int, of: int) -> None:
    """Ignore progress."""


class Run:
    """One run of one experiment."""

    def __init__(
        self,
        result: Result,
        *,
        kind: Kind = "measurement",
        limits: Iterable[Limit] = (),
        peers: bool = True,
        pathway_rows: int = PATHWAY_ROWS,
        progress: Progress = show_nothing,
        data: Path | None = None,
        workers: int | None = None,
        scratch: Path | None = None,
        save: Callable[[], object] = lambda: None,
    ) -> None:
        self.result = result
        self.kind = kind
        self.scale = result.scale
        self.seed = result.seed
        self.peers = peers and kind == "measurement"
        self.pathway_rows = pathway_rows  # the maximum for Pathway; 0 leaves it out
        self.data = data  # a file, or a directory, that replaces generated data
        self.workers = workers  # the maximum to try
        self.scratch = scratch  # a directory on a disk, for experiments that write; None: the system's
        self.progress = progress
        self._limits = tuple(limits)
        self._absent: set[str] = set()  # peers that need not be asked again
        self._save = save

    # Size

    def size(self, rows: int, least: int = 1) -> int:
        """Return a row count at the scale of this run."""
        return max(least, round(rows * self.scale))

    def fixed_rounds(self, rounds: int) -> int:
        """Return a round count that does not depend on the scale; fewer in a rehearsal or a profile."""
        return min(rounds, {"measurement": rounds, "rehearsal": REHEARSAL_ROUNDS, "profile": PROFILE_ROUNDS}[self.kind])

    def scaled_rounds(self, rounds: int, least: int = 3) -> int:
        """Return a round count: all rounds from a tenth of the full size on, proportionally fewer below."""
        return min(rounds, max(least, round(rounds * self.scale * 10)))

    @property
    def slowdown(self) -> float:
        """How many times slower this machine sorts than the one that limits in seconds were set for; at least 1."""
        return max(1.0, float(self.result.machine.get(SORT_SECONDS, USUAL_SORT_SECONDS)) / USUAL_SORT_SECONDS)

    # Answers and figures

    def check(self, correct: object, what: str) -> None:
        """Raise `WrongAnswer` unless an answer agrees with an independent computation."""
        if not correct:
            raise WrongAnswer(f"{self.result.id}: {what}", detail="An independent computation has another answer.")

    def record(self, case: str, **figures: Any) -> None:
        """Add a row. The names of figures end with their units."""
        self.result.rows.append({"case": case, **rounded(figures)})
        self._save()

    def report(
        self,
        case: str,
        bar: str | None = None,
        limits: Iterable[Limit] = (),
        reference: Reference | None = None,
        latency: Stopwatch | None = None,
        **figures: Any,
    ) -> None:
        """Add a row with its reference and its limits. `bar` says in words what `limits` check.

        A limit on a figure that is None is not checked: the ratio to a peer that was not asked.
        """
        if latency is not None:
            figures |= {**latency.percentiles(), "rounds": len(latency.seconds)}
            self.curve(case, latency.seconds)
        figures |= comparison(figures, reference)
        checked = [limit for limit in limits if figures[limit.figure] is not None]
        excess = {limit.figure: limit.excess(figures[limit.figure], self.slowdown) for limit in checked}
        self.record(
            case,
            **figures,
            bar=bar,
            limits=rounded({limit.figure: limit.on(self.slowdown) for limit in checked}),
            met=all(times <= 1 for times in excess.values()) if excess else None,
            missed_by=rounded({figure: times for figure, times in excess.items() if times > 1}),
        )
        for limit in checked:
            self._judge(f"{case}: {limit}", figures[limit.figure], excess[limit.figure] <= 1)

    def figure(self, name: str, value: float) -> None:
        """Set a figure of the whole run, and check the experiment's limit on it."""
        self.result.figures[name] = rounded_value(float(value))
        for limit in self._limits:
            if limit.figure == name:
                self._judge(str(limit), value, limit.is_met(value))

    def latencies(self, case: str, seconds: Sequence[float], **figures: Any) -> None:
        """Add a row of percentiles, and a curve."""
        self.record(case, **figures, **latency_summary(seconds), rounds=len(seconds))
        self.curve(case, seconds)

    def curve(self, case: str, seconds: Sequence[float]) -> None:
        """Add a curve of the complementary CDF."""
        self.result.latencies[case] = curve(rounded_value(float(latency) * 1e3) for latency in seconds)
        self._save()

    def line(
        self,
        plot: str,
        name: str,
        points: Iterable[tuple[float, float]],
        *,
        x: str,
        y: str,
        log_x: bool = False,
        log_y: bool = False,
    ) -> None:
        """Add a line to a plot; the first line of a plot creates it."""
        lines = self.result.plots.setdefault(plot, Plot(x, y, log_x, log_y)).lines
        lines[name] = [(rounded_value(float(across)), rounded_value(float(up))) for across, up in points]

    def note(self, text: str) -> None:
        """Add a remark that tables show below the figures."""
        self.result.notes.append(text)

    # Peers

    @property
    def wants_pathway(self) -> bool:
        """Whether to compare with Pathway."""
        return self.peers and self.pathway_rows > 0

    def pathway_share(self, rows: int) -> float:
        """Return the share of `rows` that Pathway receives."""
        return min(1.0, self.pathway_rows / rows)

    def ask(self, peer: str, question: Callable[[], Answer]) -> Answer | None:
        """Return a peer's answer. Return None, and note why, if the peer is absent or fails; None if peers are off.

        `PeerTimeout` and `WrongAnswer` are raised.
        """
        if not self.peers or peer in self._absent:
            return None
        self.progress(f"asking {peer}", 0, 0)
        try:
            answer = question()
        except ImportError as error:
            self._skip(peer, f"{peer} was skipped: {error.name or error} is not installed")
        except PeerAbsent as absent:
            self._skip(peer, f"{peer} was skipped: {absent}")
        except (WrongAnswer, PeerTimeout):
            raise
        except Exception as error:  # another system may raise anything
            self.note(f"{peer} failed: {type(error).__name__}: {str(error).strip()[:PEER_ERROR_CHARACTERS]}")
        else:
            self.result.peers.setdefault(peer, peer_version(peer))
            return answer
        return None

    def _skip(self, peer: str, reason: str) -> None:
        self._absent.add(peer)
        self.note(reason)

    def _judge(self, bar: str, value: float, met: bool) -> None:
        self.result.bars.append({"bar": bar, "value": rounded_value(float(value)), "met": met})


def comparison(figures: Figures, reference: Reference | None) -> Figures:
    """Return the figures of a comparison: the reference, its seconds, and the ratio of seconds per row."""
    if reference is None:
        return {"reference": None, "reference_seconds": None, "ratio": figures.get("ratio")}
    compared: Figures = {"reference": reference.name, "reference_seconds": reference.seconds, "ratio": None}
    if reference.rows is not None:
        compared["reference_rows"] = reference.rows
    if reference.note is not None:
        compared["reference_note"] = reference.note
    if reference.seconds:
        seconds = figures.get("seconds", figures.get("p50_ms", 0) / 1e3)
        share = reference.rows / figures["rows"] if reference.rows else 1
        compared["ratio"] = seconds / reference.seconds * share
    return compared


def rounded(figures: Figures) -> Figures:
    """Return figures with floats rounded to four digits."""
    return {name: rounded_value(value) for name, value in figures.items()}


def rounded_value(value: Any) -> Any:
    """Return a float rounded to four digits; anything else unchanged."""
    return float(f"{value:.4g}") if isinstance(value, float) else value

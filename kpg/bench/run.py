"""What an experiment is given: its size, a bar to move, and a place for what it finds.

    run.size(10_000_000)                 rows at this scale
    run.say("loading", done, of)         how far it is
    run.check(found == expected, "...")  no figure without its answer checked
    run.record("shared", p50_ms=...)     a line of the table
    run.figure("times", 1.3)             what bars are about
    run.latencies("shared", seconds)     a curve of the complementary CDF
    run.line("memory", "shared", points) a line of another picture
    run.ask("duckdb", function)          a peer, if it is there

Everything is kept as it is found, so a run that is interrupted, or killed, has all that came before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from kpg.bench.clocks import summary
from kpg.bench.experiment import Bar
from kpg.bench.machine import peer_version
from kpg.bench.results import Plot, Result, curve
from kpg.errors import WrongAnswer

Progress = Callable[[str, int, int], None]  # what is done, how much of it, of how much
Answer = TypeVar("Answer")


class Absent(Exception):
    """A peer that is not on this machine; the text says what is missing."""


class TooLong(Exception):
    """A peer was stopped; the text says after how many seconds."""


def silent(what: str, done: int, of: int) -> None:
    """Nobody watches."""


class Run:
    """One run of one experiment."""

    def __init__(
        self,
        result: Result,
        *,
        bars: Iterable[Bar] = (),
        peers: bool = True,
        progress: Progress = silent,
        data: Path | None = None,
        workers: int | None = None,
        keep: Callable[[], object] = lambda: None,
    ) -> None:
        self.result = result
        self.scale = result.scale
        self.seed = result.seed
        self.peers = peers
        self.data = data  # a file, or a directory, to use in place of generated data
        self.workers = workers  # the most to be tried
        self.say = progress
        self._bars = tuple(bars)
        self._silent: set[str] = set()  # peers that need not be asked again
        self._keep = keep  # called whenever there is something new

    def size(self, rows: int, least: int = 1) -> int:
        """A number of rows, at the scale of this run."""
        return max(least, round(rows * self.scale))

    def rounds(self, times: int, least: int = 3) -> int:
        """A number of rounds: all of them from a tenth of full size on, fewer below."""
        return min(times, max(least, round(times * self.scale * 10)))

    def check(self, right: object, what: str) -> None:
        """Stop if an answer is not what an independent computation says."""
        if not right:
            raise WrongAnswer(f"{self.result.id}: {what}", detail="An independent computation says otherwise.")

    def record(self, case: str, **figures: Any) -> None:
        """A line of the table; figures have units in their names."""
        self.result.rows.append({"case": case, **{name: rounded(value) for name, value in figures.items()}})
        self._keep()

    def figure(self, name: str, value: float) -> None:
        """A figure that bars, or the report, are about."""
        self.result.figures[name] = rounded(float(value))
        for bar in self._bars:
            if bar.figure == name:
                self.result.bars.append({"bar": str(bar), "value": rounded(float(value)), "met": bar.met(value)})

    def latencies(self, case: str, seconds: Sequence[float], **figures: Any) -> None:
        """The latencies of a case: a line of the table, and a curve."""
        self.record(case, **figures, **summary(seconds), rounds=len(seconds))
        self.curve(case, seconds)

    def curve(self, case: str, seconds: Sequence[float]) -> None:
        """A curve of the complementary CDF alone."""
        self.result.latencies[case] = curve(rounded(float(each) * 1e3) for each in seconds)
        self._keep()

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
        """A line of a picture."""
        made = self.result.plots.setdefault(plot, Plot(x, y, log_x, log_y))
        made.lines[name] = [(rounded(float(a)), rounded(float(b))) for a, b in points]

    def note(self, text: str) -> None:
        """Something to be said beside the figures."""
        self.result.notes.append(text)

    def ask(self, peer: str, question: Callable[[], Answer]) -> Answer | None:
        """What a peer answers; None, and a note, if it is not here, not asked, or breaks. TooLong is the caller's."""
        if not self.peers or peer in self._silent:
            return None
        self.say(f"asking {peer}", 0, 0)
        try:
            found = question()
        except ImportError as error:
            self._skip(peer, f"{peer} was skipped: {error.name or error} is not installed")
        except Absent as absent:
            self._skip(peer, f"{peer} was skipped: {absent}")
        except (WrongAnswer, TooLong):
            raise
        except Exception as error:  # whatever another system may raise
            self.note(f"{peer} failed: {type(error).__name__}: {str(error).strip()[:200]}")
        else:
            self.result.peers.setdefault(peer, peer_version(peer))
            return found
        return None

    def _skip(self, peer: str, why: str) -> None:
        self._silent.add(peer)
        self.note(why)


def rounded(value: Any) -> Any:
    """A float to four digits; anything else as it is."""
    return float(f"{value:.4g}") if isinstance(value, float) else value

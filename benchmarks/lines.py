"""What an experiment reports: lines of JSON, each with figures, a reference of the same run, and whether bars are met.

    ratio  =  our seconds / reference seconds           both per row where the reference did fewer rows; below 1 we win
    met    =  every bar holds

A bar on seconds, milliseconds or a rate was written for a machine on which `np.sort` of 10M int64 takes 0.17 s: its
limit here is stretched by what it takes in the same run (`limits`). A bar on a ratio or on bytes is not.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from benchmarks.measure import ROOT, USUAL_SORT_SECONDS, Clock

RESULTS = ROOT / "bench-results"
LINES = RESULTS / "results.jsonl"
TIMES = {"seconds", "p50_ms", "p99_ms"}
RATES = {"rows_per_second"}
Figures = dict[str, Any]
Kind = Literal["measurement", "rehearsal", "profile"]


@dataclass(frozen=True, slots=True)
class Bar:
    """A limit on one figure of a line."""

    figure: str
    limit: float
    least: bool = False

    def here(self, stretch: float) -> float:
        """The limit on a machine that takes `stretch` times as long as the usual one."""
        if self.figure in TIMES:
            return self.limit * stretch
        return self.limit / stretch if self.figure in RATES else self.limit

    def missed_by(self, value: float, stretch: float) -> float:
        """How many times worse than the limit; up to 1 is met."""
        limit = self.here(stretch)
        if limit == 0:
            return 1 + value  # none at all is allowed: by one more than there are
        return limit / value if self.least else value / limit


def at_most(figure: str, limit: float) -> Bar:
    """The figure may not exceed this."""
    return Bar(figure, limit)


def at_least(figure: str, limit: float) -> Bar:
    """The figure may not fall below this."""
    return Bar(figure, limit, least=True)


@dataclass(slots=True)
class Reference:
    """Something else that did the same in the same run."""

    name: str
    seconds: float | None
    rows: int | None = None  # if not as many as we did
    note: str | None = None


@dataclass(slots=True)
class Run:
    """One run of one experiment: how large, on what, and the lines it reports."""

    id: str
    scale: float
    pathway_rows: int  # the most that Pathway is given; 0 leaves it out
    sorting: float
    started: str
    machine: dict[str, object]
    commit: str
    kind: Kind = "measurement"
    lines: list[dict[str, Any]] = field(default_factory=list)
    latencies: dict[str, list[float]] = field(default_factory=dict)

    def size(self, rows: int) -> int:
        """A number of rows, at the scale of this run."""
        return max(1, round(rows * self.scale))

    def asks_pathway(self) -> bool:
        """Whether to compare with Pathway."""
        return self.pathway_rows > 0 and self.asks_peers()

    def asks_peers(self) -> bool:
        """Whether to compare with others at all."""
        return self.kind == "measurement"

    def pathway_share(self, rows: int) -> float:
        """Of so many rows, the share that Pathway is given."""
        return min(1.0, self.pathway_rows / rows)

    def times(self, rounds: int) -> int:
        """A number of rounds: as many at any scale, fewer if nobody counts them."""
        return min(rounds, {"measurement": rounds, "rehearsal": 3, "profile": 200}[self.kind])

    @property
    def stretch(self) -> float:
        """How many times slower than the machine that bars in seconds were written for."""
        return self.sorting / USUAL_SORT_SECONDS

    def report(
        self,
        case: str,
        bar: str | None = None,
        bars: Iterable[Bar] = (),
        reference: Reference | None = None,
        latency: Clock | None = None,
        **figures: Any,
    ) -> dict[str, Any]:
        """Print one line and keep it. `bar` is the sentence that `bars` make checkable."""
        if latency is not None:
            figures |= {**latency.latencies(), "rounds": len(latency.seconds)}
            self.latencies[case] = list(latency.seconds)
        figures |= compared(figures, reference)
        known = [each for each in bars if figures[each.figure] is not None]
        missed = {each.figure: each.missed_by(figures[each.figure], self.stretch) for each in known}
        line: dict[str, Any] = {"id": self.id, "case": case, **rounded(figures), "bar": bar}
        line["limits"] = rounded({each.figure: each.here(self.stretch) for each in known})
        line["met"] = all(times <= 1 for times in missed.values()) if missed else None
        line["missed_by"] = rounded({figure: times for figure, times in missed.items() if times > 1})
        line |= {"scale": self.scale, "comparable": self.scale == 1}
        line |= {"commit": self.commit, "run": self.started, "machine": self.machine}
        if self.kind == "measurement":
            print(json.dumps(line), flush=True)
        self.lines.append(line)
        return line

    def save(self) -> None:
        """Add the lines to the results; keep the latencies for plots, if they are of full size."""
        RESULTS.mkdir(exist_ok=True)
        with LINES.open("a") as file:
            file.writelines(json.dumps(line) + "\n" for line in self.lines)
        if self.latencies and self.scale == 1:
            (RESULTS / f"{self.id}.latencies.json").write_text(json.dumps(self.latencies))


def compared(figures: dict[str, Any], reference: Reference | None) -> dict[str, Any]:
    """The figures of a comparison: who, how long, and the ratio of seconds for each row."""
    if reference is None:
        return {"reference": None, "reference_seconds": None, "ratio": figures.get("ratio")}
    found: dict[str, Any] = {"reference": reference.name, "reference_seconds": reference.seconds}
    if reference.rows is not None:
        found["reference_rows"] = reference.rows
    if reference.note is not None:
        found["reference_note"] = reference.note
    seconds = figures.get("seconds", figures.get("p50_ms", 0) / 1e3)
    if reference.seconds:
        share = reference.rows / figures["rows"] if reference.rows else 1
        found["ratio"] = seconds / reference.seconds * share
    else:
        found["ratio"] = None
    return found


def rounded(figures: dict[str, Any]) -> dict[str, Any]:
    """The figures to four digits."""
    return {name: float(f"{value:.4g}") if isinstance(value, float) else value for name, value in figures.items()}


def saved(path: Path = LINES) -> list[dict[str, Any]]:
    """All lines that were ever saved here, oldest first."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def latest(lines: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of the lines of full size, those of the last run of each experiment."""
    full = [line for line in lines if line["comparable"]]
    runs = {line["id"]: line["run"] for line in full}
    return [line for line in full if line["run"] == runs[line["id"]]]

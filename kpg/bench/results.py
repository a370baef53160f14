"""The result of one run: rows, figures, limits, latency curves and plots, as one JSON file for each experiment.

A file has a status: `complete`, `partial` (interrupted; it holds what was measured before) or `failed` (an answer was
wrong, or an error occurred; `reason` says which). A file is replaced atomically, so a reader never sees half of one.

A row is a dict of figures under their `case`. A row of an engine experiment also holds its comparison and its limits:

    reference, reference_seconds, ratio     another system or program in the same run; ratio = our seconds / its seconds
    bar, limits, met, missed_by             the bar in words, the limits on this machine, and the excess of missed ones
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from kpg.errors import Corrupt

Status = Literal["complete", "partial", "failed"]
Curve = list[tuple[float, float]]  # ascending milliseconds, each with the share of rounds that took at least as long
MAX_CURVE_POINTS = 4_000  # a picture cannot show more
SORT_SECONDS = "np_sort_10m_seconds"  # the member of `machine` that holds the seconds of np.sort on 10M int64


@dataclass(slots=True)
class Plot:
    """Lines over one axis."""

    x: str
    y: str
    log_x: bool = False
    log_y: bool = False
    lines: dict[str, list[tuple[float, float]]] = field(default_factory=dict)


@dataclass(slots=True)
class Result:
    """The result of one run of one experiment."""

    id: str
    title: str
    scale: float
    seed: int
    started: str
    machine: dict[str, Any]
    paper: str = ""  # the figure or table of the paper that the experiment repeats
    data: str = ""  # the file that replaced generated data
    status: Status = "partial"  # until the run ends
    reason: str = "not finished: the run is still going on, or was killed"
    seconds: float = 0.0
    rows: list[dict[str, Any]] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)
    bars: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    peers: dict[str, str] = field(default_factory=dict)  # version by peer
    latencies: dict[str, Curve] = field(default_factory=dict)
    plots: dict[str, Plot] = field(default_factory=dict)

    @property
    def is_full_size(self) -> bool:
        """Whether the run has the size that its limits are set for."""
        return self.scale >= 1 and not self.data

    def save(self, directory: Path) -> Path:
        """Write the file of this experiment, replacing an older one."""
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"{self.id}.json"
        part = path.with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps(asdict(self), indent=1, default=float))
        os.replace(part, path)
        return path


def read(path: Path) -> Result:
    """Read a saved result."""
    try:
        members = json.loads(path.read_text())
        plots = {name: _plot(saved) for name, saved in members.pop("plots").items()}
        latencies = {case: [(ms, share) for ms, share in points] for case, points in members.pop("latencies").items()}
        return Result(**members, plots=plots, latencies=latencies)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Corrupt(f"{path} is not a result of an experiment", detail=str(error), hint="Run it again.") from error


def read_all(directory: Path, ids: Iterable[str]) -> list[Result]:
    """Read the saved results of some experiments; those without a file are left out."""
    paths = [directory / f"{id}.json" for id in ids]
    return [read(path) for path in paths if path.exists()]


def _plot(saved: dict[str, Any]) -> Plot:
    lines = {name: [(x, y) for x, y in points] for name, points in saved.pop("lines").items()}
    return Plot(**saved, lines=lines)


def curve(milliseconds: Iterable[float]) -> Curve:
    """Return the complementary CDF of latencies: each with the share of all latencies that are at least as long.

    Of more than `MAX_CURVE_POINTS` latencies the curve keeps the whole tail and an even sample of the rest.
    """
    ordered = sorted(milliseconds)
    return [(ordered[index], 1 - index / len(ordered)) for index in curve_indexes(len(ordered))]


def curve_indexes(count: int) -> list[int]:
    """Return which of `count` ascending values a curve keeps."""
    if count <= MAX_CURVE_POINTS:
        return list(range(count))
    tail = MAX_CURVE_POINTS // 4
    step = (count - tail) / (MAX_CURVE_POINTS - tail)
    return [int(index * step) for index in range(MAX_CURVE_POINTS - tail)] + list(range(count - tail, count))

"""What a run leaves: figures, whether bars are met, latencies and curves for pictures, as one JSON file for each
experiment.

A file says its status: `complete`, `partial` (interrupted; what was measured until then is there) or `failed` (an
answer was wrong, or something broke; `reason` says what). Each file is replaced in one step, so a reader never meets
half of one.
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
Curve = list[tuple[float, float]]  # milliseconds, growing, and the share of rounds that took at least as long
MOST_POINTS = 4_000  # of one curve; more cannot be told apart in a picture


@dataclass(slots=True)
class Plot:
    """Lines over some axis."""

    x: str
    y: str
    log_x: bool = False
    log_y: bool = False
    lines: dict[str, list[tuple[float, float]]] = field(default_factory=dict)


@dataclass(slots=True)
class Result:
    """One run of one experiment."""

    id: str
    title: str
    scale: float
    seed: int
    started: str
    machine: dict[str, Any]
    paper: str = ""  # which figure or table of which paper
    data: str = ""  # the file that was used in place of generated data
    status: Status = "partial"  # until it is known to be more
    reason: str = "not ended: it still runs, or was killed"  # why it is not complete
    seconds: float = 0.0
    rows: list[dict[str, Any]] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)
    bars: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    peers: dict[str, str] = field(default_factory=dict)  # who was asked, in which version
    latencies: dict[str, Curve] = field(default_factory=dict)
    plots: dict[str, Plot] = field(default_factory=dict)

    def save(self, directory: Path) -> Path:
        """Write the file of this experiment, in place of an older one."""
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"{self.id}.json"
        part = path.with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps(asdict(self), indent=1, default=float))
        os.replace(part, path)
        return path


def read(path: Path) -> Result:
    """A result that was saved."""
    try:
        found = json.loads(path.read_text())
        plots = {name: _plot(each) for name, each in found.pop("plots").items()}
        latencies = {name: [(ms, share) for ms, share in each] for name, each in found.pop("latencies").items()}
        return Result(**found, plots=plots, latencies=latencies)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Corrupt(f"{path} is not a result of an experiment", detail=str(error), hint="Run it again.") from error


def _plot(saved: dict[str, Any]) -> Plot:
    lines = {name: [(x, y) for x, y in points] for name, points in saved.pop("lines").items()}
    return Plot(**saved, lines=lines)


def curve(milliseconds: Iterable[float]) -> Curve:
    """Each latency with the share of all that are at least as long; of very many all of the tail, and some before."""
    ordered = sorted(milliseconds)
    return [(ordered[place], 1 - place / len(ordered)) for place in places(len(ordered))]


def places(count: int) -> list[int]:
    """Which of so many ordered values are kept: every one of the last, evenly spread ones before."""
    if count <= MOST_POINTS:
        return list(range(count))
    tail = MOST_POINTS // 4
    step = (count - tail) / (MOST_POINTS - tail)
    return [int(each * step) for each in range(MOST_POINTS - tail)] + list(range(count - tail, count))

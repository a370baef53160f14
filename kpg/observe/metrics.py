"""Figures of a db for a monitor, as values and as the text that Prometheus reads.

    as_prometheus(snapshot(db))

Made of what `db.describe()` says, so it works alike for a db in this process, on a thread of its own and on several
workers, whose number is a label then. No two figures have the same name and labels: equal ones are added up. Costs a
look at every operator; nothing is counted for its sake.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal, NamedTuple

Kind = Literal["counter", "gauge"]
Labels = tuple[tuple[str, str], ...]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metric(NamedTuple):
    """One figure."""

    name: str
    help: str
    kind: Kind
    labels: Labels
    value: float


@dataclass(frozen=True, slots=True)
class Family:
    """What a figure means."""

    kind: Kind
    help: str


FAMILIES: dict[str, Family] = {
    "kpg_epoch": Family("gauge", "The open epoch."),
    "kpg_inputs": Family("gauge", "Relations that rows are inserted into."),
    "kpg_outputs": Family("gauge", "Answers that are kept up to date."),
    "kpg_workers": Family("gauge", "Workers that share the work."),
    "kpg_dataflows": Family("gauge", "Dataflows that are installed."),
    "kpg_operators": Family("gauge", "Operators of a dataflow."),
    "kpg_steps_total": Family("counter", "Steps of operators."),
    "kpg_arrangement_rows": Family("gauge", "Updates that an arrangement holds."),
    "kpg_arrangement_bytes": Family("gauge", "Bytes that an arrangement holds."),
    "kpg_arrangement_batches": Family("gauge", "Batches that a reader of an arrangement meets."),
    "kpg_arrangement_readers": Family("gauge", "Dataflows that import an arrangement."),
    "kpg_symbols": Family("gauge", "Texts that rows refer to."),
    "kpg_symbol_bytes": Family("gauge", "Bytes of those texts."),
    "kpg_resident_bytes": Family("gauge", "Memory that the process of a worker holds."),
    "kpg_memory_limit_bytes": Family("gauge", "Memory that it may hold; missing if there is no limit."),
    "kpg_log_bytes": Family("gauge", "Bytes of log since the last checkpoint; missing if nothing is kept on disk."),
    "kpg_log_trouble": Family("gauge", "1 while the last checkpoint has failed."),
    "kpg_dataflow_seconds_total": Family("counter", "Time spent in a dataflow; only while events are recorded."),
    "kpg_dataflow_steps_total": Family("counter", "Steps of a dataflow; only while events are recorded."),
}


def snapshot(db: Any) -> list[Metric]:
    """All figures as they are now, those of one name together."""
    described = db.describe()
    workers: list[dict[str, Any]] = described.get("workers", [described])
    found: dict[tuple[str, Labels], float] = {}
    for name, labels, value in (*of_db(described, len(workers)), *of_workers(workers)):
        found[name, labels] = found.get((name, labels), 0) + value
    order = list(FAMILIES)
    return [
        Metric(name, FAMILIES[name].help, FAMILIES[name].kind, labels, value)
        for (name, labels), value in sorted(found.items(), key=lambda item: order.index(item[0][0]))
    ]


Figure = tuple[str, Labels, float]


def of_db(described: dict[str, Any], workers: int) -> Iterator[Figure]:
    """What there is once, however many workers there are."""
    yield "kpg_epoch", (), described["epoch"]
    yield "kpg_inputs", (), len(described["inputs"])
    yield "kpg_outputs", (), len(described["outputs"])
    yield "kpg_workers", (), workers


def of_workers(workers: list[dict[str, Any]]) -> Iterator[Figure]:
    """What each worker has, with its number if there are several."""
    for number, described in enumerate(workers):
        own: Labels = (("worker", str(number)),) if len(workers) > 1 else ()
        yield from of_memory(described, own)
        for each in described["dataflows"]:
            yield from of_dataflow(each, own)
        for each in described["arrangements"]:
            yield from of_arrangement(each, own)


def of_memory(described: dict[str, Any], own: Labels) -> Iterator[Figure]:
    """The figures of a worker as a whole."""
    memory, storage = described["memory"], described["storage"]
    yield "kpg_dataflows", own, len(described["dataflows"])
    yield "kpg_steps_total", own, described["steps"]
    yield "kpg_symbols", own, described["symbols"]["count"]
    yield "kpg_symbol_bytes", own, described["symbols"]["bytes"]
    yield "kpg_resident_bytes", own, memory["resident_bytes"]
    if memory["limit_bytes"] is not None:
        yield "kpg_memory_limit_bytes", own, memory["limit_bytes"]
    if storage is not None:
        yield "kpg_log_bytes", own, storage["log_bytes"]
        yield "kpg_log_trouble", own, int(storage["trouble"] is not None)


def of_dataflow(described: dict[str, Any], own: Labels) -> Iterator[Figure]:
    """The figures of one dataflow."""
    labels = (("dataflow", described["name"]), *own)
    yield "kpg_operators", labels, described["operators"]
    if described.get("seconds") is not None:
        yield "kpg_dataflow_seconds_total", labels, described["seconds"]
        yield "kpg_dataflow_steps_total", labels, described["steps"]


def of_arrangement(described: dict[str, Any], own: Labels) -> Iterator[Figure]:
    """The figures of one arrangement."""
    labels = (("arrangement", described["name"]), ("dataflow", described["dataflow"]), *own)
    yield "kpg_arrangement_rows", labels, described["rows"]
    yield "kpg_arrangement_bytes", labels, described["bytes"]
    yield "kpg_arrangement_batches", labels, described["batches"]
    yield "kpg_arrangement_readers", labels, len(described["shared_by"])


def as_prometheus(metrics: Iterable[Metric]) -> str:
    """Figures as text: what a figure means, then a line for each set of labels."""
    lines: list[str] = []
    for name, group in groupby(metrics, key=lambda metric: metric.name):
        same = list(group)
        lines.append(f"# HELP {name} {escaped(same[0].help)}")
        lines.append(f"# TYPE {name} {same[0].kind}")
        lines += [f"{name}{show_labels(metric.labels)} {metric.value!r}" for metric in same]
    return "\n".join(lines) + "\n" if lines else ""


def show_labels(labels: Labels) -> str:
    """Labels in braces, if there are any."""
    if not labels:
        return ""
    quoted = (f'{name}="{escaped(value, quote=True)}"' for name, value in labels)
    return "{" + ",".join(quoted) + "}"


def escaped(text: str, quote: bool = False) -> str:
    """Text on one line."""
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quote else text

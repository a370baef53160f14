"""Metrics of a db, as values and in Prometheus' text format.

    as_prometheus(snapshot(db))

`snapshot` reads `db.describe()`, so it works alike for a db in this process, on a background thread and on several
workers; with several, the worker number is a label. Metrics with equal name and labels are added up, so that each name
and label set occurs once. `as_prometheus` is the only writer of the text format; the server passes its own metrics to
it. It needs the package prometheus_client (extra `server`); `snapshot` does not.
Cost: one visit of every operator per call. The engine counts nothing for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from kpg.extras import require

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric as PrometheusFamily

MetricKind = Literal["counter", "gauge", "histogram"]
Labels = tuple[tuple[str, str], ...]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"  # of `as_prometheus`


class Metric(NamedTuple):
    """One sample."""

    name: str
    help: str
    kind: MetricKind
    labels: Labels
    value: float


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """The kind and description of a metric."""

    kind: MetricKind
    help: str


FAMILIES: dict[str, MetricFamily] = {
    "kpg_epoch": MetricFamily("gauge", "The open epoch."),
    "kpg_inputs": MetricFamily("gauge", "Inputs of the db."),
    "kpg_outputs": MetricFamily("gauge", "Outputs of the db."),
    "kpg_workers": MetricFamily("gauge", "Workers of the db."),
    "kpg_dataflows": MetricFamily("gauge", "Installed dataflows."),
    "kpg_operators": MetricFamily("gauge", "Operators of a dataflow."),
    "kpg_dataflow_lag_epochs": MetricFamily("gauge", "Epochs that a dataflow has received and not completed."),
    "kpg_dataflow_pinned_bytes": MetricFamily("gauge", "Bytes that a lagging dataflow pins in traces."),
    "kpg_steps_total": MetricFamily("counter", "Steps of operators."),
    "kpg_arrangement_rows": MetricFamily("gauge", "Updates that an arrangement holds."),
    "kpg_arrangement_bytes": MetricFamily("gauge", "Bytes that an arrangement holds."),
    "kpg_arrangement_batches": MetricFamily("gauge", "Batches that a reader of an arrangement visits."),
    "kpg_arrangement_readers": MetricFamily("gauge", "Dataflows that import an arrangement."),
    "kpg_symbols": MetricFamily("gauge", "Strings in the symbol table."),
    "kpg_symbol_bytes": MetricFamily("gauge", "Bytes of the symbol table's strings."),
    "kpg_resident_bytes": MetricFamily("gauge", "Resident memory of a worker's process."),
    "kpg_memory_limit_bytes": MetricFamily("gauge", "Memory limit of a worker's process; missing if there is none."),
    "kpg_log_bytes": MetricFamily("gauge", "Bytes of log since the last checkpoint; missing for a db in memory."),
    "kpg_log_trouble": MetricFamily("gauge", "1 if the last checkpoint failed, else 0."),
    "kpg_dataflow_seconds_total": MetricFamily("counter", "Time spent in a dataflow; only while events are recorded."),
    "kpg_dataflow_steps_total": MetricFamily("counter", "Steps of a dataflow; only while events are recorded."),
}


def snapshot(db: Any) -> list[Metric]:
    """Return all metrics as of now, grouped by name."""
    described = db.describe()
    workers: list[dict[str, Any]] = described.get("workers", [described])
    values: dict[tuple[str, Labels], float] = {}
    for name, labels, value in (*of_db(described, len(workers)), *of_workers(workers)):
        values[name, labels] = values.get((name, labels), 0) + value
    order = list(FAMILIES)
    return [
        Metric(name, FAMILIES[name].help, FAMILIES[name].kind, labels, value)
        for (name, labels), value in sorted(values.items(), key=lambda item: order.index(item[0][0]))
    ]


Sample = tuple[str, Labels, float]


def of_db(described: dict[str, Any], workers: int) -> Iterator[Sample]:
    """Yield the metrics of the db as a whole."""
    yield "kpg_epoch", (), described["epoch"]
    yield "kpg_inputs", (), len(described["inputs"])
    yield "kpg_outputs", (), len(described["outputs"])
    yield "kpg_workers", (), workers


def of_workers(workers: list[dict[str, Any]]) -> Iterator[Sample]:
    """Yield the metrics of each worker, labelled with its number if there are several."""
    for number, described in enumerate(workers):
        own: Labels = (("worker", str(number)),) if len(workers) > 1 else ()
        yield from of_memory(described, own)
        for dataflow in described["dataflows"]:
            yield from of_dataflow(dataflow, own)
        for arrangement in described["arrangements"]:
            yield from of_arrangement(arrangement, own)


def of_memory(described: dict[str, Any], own: Labels) -> Iterator[Sample]:
    """Yield the metrics of one worker's process."""
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


def of_dataflow(described: dict[str, Any], own: Labels) -> Iterator[Sample]:
    """Yield the metrics of one dataflow."""
    labels = (("dataflow", described["name"]), *own)
    yield "kpg_operators", labels, described["operators"]
    yield "kpg_dataflow_lag_epochs", labels, described["lag_epochs"]
    yield "kpg_dataflow_pinned_bytes", labels, described["pinned_bytes"]
    if described.get("seconds") is not None:
        yield "kpg_dataflow_seconds_total", labels, described["seconds"]
        yield "kpg_dataflow_steps_total", labels, described["steps"]


def of_arrangement(described: dict[str, Any], own: Labels) -> Iterator[Sample]:
    """Yield the metrics of one arrangement."""
    labels = (("arrangement", described["name"]), ("dataflow", described["dataflow"]), *own)
    yield "kpg_arrangement_rows", labels, described["rows"]
    yield "kpg_arrangement_bytes", labels, described["bytes"]
    yield "kpg_arrangement_batches", labels, described["batches"]
    yield "kpg_arrangement_readers", labels, len(described["shared_by"])


def as_prometheus(metrics: Iterable[Metric]) -> str:
    """Write metrics in Prometheus' text format 0.0.4; those of one name must be adjacent."""
    require("prometheus_client", "Prometheus' text format")
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry()  # not the global one, which belongs to the application
    registry.register(SnapshotCollector(list(metrics)))
    return generate_latest(registry).decode()


class SnapshotCollector:
    """Presents a list of metrics to a registry of prometheus_client."""

    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[PrometheusFamily]:
        """Yield one family per name; the samples of a histogram share one. The writer appends `_total` to counters."""
        from prometheus_client.metrics_core import Metric as PrometheusFamily

        for name, group in groupby(self._metrics, key=family_name):
            samples = list(group)
            family = PrometheusFamily(name.removesuffix("_total"), samples[0].help, samples[0].kind)
            for sample in samples:
                family.add_sample(sample.name, dict(sample.labels), sample.value)
            yield family


def family_name(metric: Metric) -> str:
    """Return the name of a metric's family: that of a histogram has several samples."""
    return metric.name.rpartition("_")[0] if metric.kind == "histogram" else metric.name

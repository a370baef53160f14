"""The counters, gauges and histograms of a server.

All names begin with `kpg_`; docs/server.md lists them. Counting costs one addition to a dictionary, on the event loop's
thread only; in a histogram, two and a binary search. `kpg.observe.metrics` writes them as text, together with the
metrics of the engine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from kpg.observe.metrics import Labels, Metric, MetricFamily
from kpg.server.duration_histogram import DurationHistogram
from kpg.server.throughput_history import ThroughputHistory

SERVER_FAMILIES: dict[str, MetricFamily] = {
    "kpg_sessions": MetricFamily("gauge", "Connected clients."),
    "kpg_lost_sessions": MetricFamily("gauge", "Sessions that lost their connection, with interests that wait."),
    "kpg_sessions_total": MetricFamily("counter", "Clients that have connected."),
    "kpg_resumed_total": MetricFamily("counter", "Interests that a new connection has continued."),
    "kpg_requests_total": MetricFamily("counter", "Requests by type and outcome: ok, or the class of the error."),
    "kpg_request_seconds": MetricFamily("histogram", "Time between request and reply, by type."),
    "kpg_change_seconds": MetricFamily(
        "histogram", "Time between the engine's changes of an answer and their sending."
    ),
    "kpg_messages_sent_total": MetricFamily("counter", "Messages sent."),
    "kpg_change_rows_total": MetricFamily("counter", "Rows of changes sent."),
    "kpg_refused_total": MetricFamily("counter", "Connections and HTTP requests refused, by reason."),
    "kpg_waiting_messages": MetricFamily("gauge", "Message groups queued for sending, over all sessions."),
    "kpg_interests": MetricFamily("gauge", "Interests of all sessions."),
    "kpg_rules": MetricFamily("gauge", "Registered rules."),
    "kpg_relations": MetricFamily("gauge", "Relations and attributes."),
}


class ServerMetrics:
    """Counters and histograms by name and labels."""

    def __init__(self) -> None:
        self._counters: defaultdict[tuple[str, Labels], float] = defaultdict(float)
        self._histograms: defaultdict[tuple[str, Labels], DurationHistogram] = defaultdict(DurationHistogram)
        self.history = ThroughputHistory()

    def add(self, name: str, amount: float = 1, **labels: str) -> None:
        """Increase a counter."""
        self._counters[name, tuple(sorted(labels.items()))] += amount

    def add_seconds(self, name: str, seconds: float, **labels: str) -> None:
        """Count a duration in a histogram."""
        self._histograms[name, tuple(sorted(labels.items()))].add(seconds)

    def add_request(self, kind: str, outcome: str, seconds: float) -> None:
        """Count a finished request and its duration."""
        self.add("kpg_requests_total", type=kind, outcome=outcome)
        self.add_seconds("kpg_request_seconds", seconds, type=kind)
        if kind != "inspect":  # a console does not see its own questions
            self.history.add_request(seconds, outcome != "ok")

    def add_change_rows(self, rows: int) -> None:
        """Count rows of changes that are sent."""
        self.add("kpg_change_rows_total", rows)
        self.history.add_change_rows(rows)

    def add_change(self, seconds: float) -> None:
        """Count a step of changes that was sent, and the time since the engine had it."""
        self.add_seconds("kpg_change_seconds", seconds)
        self.history.add_change(seconds)

    def snapshot(self, gauges: Mapping[str, float]) -> list[Metric]:
        """Return all counters, histograms and the given gauges, grouped by name."""
        values = {(name, ()): value for name, value in gauges.items()} | self._counters
        samples = {key: [(*key, value)] for key, value in values.items()}
        samples |= {key: list(histogram.samples(*key)) for key, histogram in self._histograms.items()}
        order = list(SERVER_FAMILIES)
        return [
            Metric(name, SERVER_FAMILIES[family].help, SERVER_FAMILIES[family].kind, labels, value)
            for family, own in sorted(samples, key=lambda key: (order.index(key[0]), key[1]))
            for name, labels, value in samples[family, own]
        ]

"""The counters, gauges and histograms of a server.

All names begin with `kpg_`; docs/server.md lists them. Counting costs one addition to a dictionary, on the event loop's
thread only; in a histogram, two and a binary search. `kpg.observe.metrics` writes them as text, together with the
metrics of the engine.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Final

from kpg.observe.metrics import Labels, Metric, MetricFamily

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


BUCKET_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Histogram:
    """Durations, counted in buckets."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BUCKET_SECONDS) + 1)  # the last bucket has no bound
        self._sum = 0.0

    def add(self, seconds: float) -> None:
        """Count a duration."""
        self._counts[bisect_left(BUCKET_SECONDS, seconds)] += 1
        self._sum += seconds

    def samples(self, name: str, labels: Labels) -> Iterator[tuple[str, Labels, float]]:
        """Yield the samples that Prometheus expects: the count up to each bound, the sum, and the count of all."""
        bounds = [*map(str, BUCKET_SECONDS), "+Inf"]
        for bound, count in zip(bounds, accumulate(self._counts), strict=True):
            yield f"{name}_bucket", (*labels, ("le", bound)), count
        yield f"{name}_count", labels, sum(self._counts)
        yield f"{name}_sum", labels, self._sum


class ServerMetrics:
    """Counters and histograms by name and labels."""

    def __init__(self) -> None:
        self._counters: defaultdict[tuple[str, Labels], float] = defaultdict(float)
        self._histograms: defaultdict[tuple[str, Labels], Histogram] = defaultdict(Histogram)

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

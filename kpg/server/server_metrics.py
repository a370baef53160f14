"""The counters and gauges of a server.

All names begin with `kpg_`; docs/server.md lists them. Counting costs one addition to a dictionary, on the event loop's
thread only. `kpg.observe.metrics` writes them as text, together with the metrics of the engine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from kpg.observe.metrics import Labels, Metric, MetricFamily

SERVER_FAMILIES: dict[str, MetricFamily] = {
    "kpg_sessions": MetricFamily("gauge", "Connected clients."),
    "kpg_lost_sessions": MetricFamily("gauge", "Sessions that lost their connection, with interests that wait."),
    "kpg_sessions_total": MetricFamily("counter", "Clients that have connected."),
    "kpg_resumed_total": MetricFamily("counter", "Interests that a new connection has continued."),
    "kpg_requests_total": MetricFamily("counter", "Requests by type and outcome: ok, or the class of the error."),
    "kpg_request_seconds_total": MetricFamily("counter", "Time between request and reply, by type."),
    "kpg_messages_sent_total": MetricFamily("counter", "Messages sent."),
    "kpg_change_rows_total": MetricFamily("counter", "Rows of changes sent."),
    "kpg_refused_total": MetricFamily("counter", "Connections and HTTP requests refused, by reason."),
    "kpg_waiting_messages": MetricFamily("gauge", "Message groups queued for sending, over all sessions."),
    "kpg_interests": MetricFamily("gauge", "Interests of all sessions."),
    "kpg_rules": MetricFamily("gauge", "Registered rules."),
    "kpg_relations": MetricFamily("gauge", "Relations and attributes."),
}


class ServerMetrics:
    """Counters by name and labels."""

    def __init__(self) -> None:
        self._counters: defaultdict[tuple[str, Labels], float] = defaultdict(float)

    def add(self, name: str, amount: float = 1, **labels: str) -> None:
        """Increase a counter."""
        self._counters[name, tuple(sorted(labels.items()))] += amount

    def add_request(self, kind: str, outcome: str, seconds: float) -> None:
        """Count a finished request and its duration."""
        self.add("kpg_requests_total", type=kind, outcome=outcome)
        self.add("kpg_request_seconds_total", seconds, type=kind)

    def snapshot(self, gauges: Mapping[str, float]) -> list[Metric]:
        """Return all counters and the given gauges, grouped by name."""
        values = {(name, ()): value for name, value in gauges.items()} | self._counters
        order = list(SERVER_FAMILIES)
        return [
            Metric(name, SERVER_FAMILIES[name].help, SERVER_FAMILIES[name].kind, labels, value)
            for (name, labels), value in sorted(values.items(), key=lambda item: (order.index(item[0][0]), item[0][1]))
        ]

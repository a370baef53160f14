"""What the server counts, in Prometheus' text format.

All names begin with `kpg_`; docs/server.md lists them. Counting costs one addition. The engine's own figures are those
of `kpg.observe.metrics`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

HELP = {
    "kpg_sessions": ("gauge", "Clients that are connected."),
    "kpg_sessions_total": ("counter", "Clients that have connected."),
    "kpg_requests_total": ("counter", "Requests by type and outcome: ok, or the class of the error."),
    "kpg_request_seconds_total": ("counter", "Time between request and reply, by type."),
    "kpg_messages_sent_total": ("counter", "Messages sent."),
    "kpg_change_rows_total": ("counter", "Rows of changes sent."),
    "kpg_refused_total": ("counter", "Connections and HTTP requests refused, by reason."),
    "kpg_waiting_messages": ("gauge", "Messages that wait to be sent, of all sessions."),
    "kpg_interests": ("gauge", "Interests of all sessions."),
    "kpg_rules": ("gauge", "Rules that are registered."),
    "kpg_relations": ("gauge", "Relations and attributes."),
}
Labels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Metrics:
    """Counters by name and labels."""

    counts: Counter[tuple[str, Labels]] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, by: int = 1, **labels: str) -> None:
        """Count something."""
        self.counts[name, tuple(sorted(labels.items()))] += by

    def took(self, kind: str, seconds: float) -> None:
        """A request took so long."""
        self.seconds[kind] = self.seconds.get(kind, 0.0) + seconds

    def text(self, gauges: dict[str, float]) -> str:
        """All of it, with what is measured now."""
        return "".join(self._lines(gauges))

    def _lines(self, gauges: dict[str, float]) -> Iterator[str]:
        values: dict[str, dict[Labels, float]] = {name: {(): value} for name, value in gauges.items()}
        for (name, labels), count in self.counts.items():
            values.setdefault(name, {})[labels] = count
        for kind, seconds in self.seconds.items():
            values.setdefault("kpg_request_seconds_total", {})[(("type", kind),)] = seconds
        for name, (kind, says) in HELP.items():
            if name in values:
                yield f"# HELP {name} {says}\n# TYPE {name} {kind}\n"
                yield from (f"{name}{show(labels)} {value:.17g}\n" for labels, value in sorted(values[name].items()))


def show(labels: Labels) -> str:
    """Labels as Prometheus reads them."""
    escaped = (
        (name, value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")) for name, value in labels
    )  # fmt: skip
    return "{" + ",".join(f'{name}="{value}"' for name, value in escaped) + "}" if labels else ""

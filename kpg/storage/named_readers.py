"""Readers that come back for what has happened since: how far each has come, and what it reads.

A reader of some relations keeps the history of those; one that does not say which, that of all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kpg.algebra.order import Time


class NamedReader(NamedTuple):
    """A reader that will ask for what happens from a time on."""

    time: Time
    of: frozenset[str] | None = None  # the relations it reads; None: all

    def reads(self, relation: str) -> bool:
        """Whether it needs the history of a relation."""
        return self.of is None or relation in self.of

    def to_json(self) -> dict[str, Any]:
        """As it is kept in notes and manifests."""
        return {"time": list(self.time), "of": None if self.of is None else sorted(self.of)}

    @classmethod
    def from_json(cls, written: Any) -> NamedReader:
        """From a note or manifest; those of before had only the time, and meant all relations."""
        if not isinstance(written, dict):
            return cls(tuple(written))
        of = written.get("of")
        return cls(tuple(written["time"]), None if of is None else frozenset(of))

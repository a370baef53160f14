"""Named readers: external programs that read the changes since the time they read last.

For a reader of some relations the db keeps the history of those, for a reader that names none the history of all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kpg.algebra.order import Time


class NamedReader(NamedTuple):
    """A reader that will ask for the changes from a time on."""

    time: Time
    of: frozenset[str] | None = None  # the relations it reads; None: all

    def reads(self, relation: str) -> bool:
        """Return whether the reader needs the history of a relation."""
        return self.of is None or relation in self.of

    def to_json(self) -> dict[str, Any]:
        """Return the reader in the form of notes and manifests."""
        return {"time": list(self.time), "of": None if self.of is None else sorted(self.of)}

    @classmethod
    def from_json(cls, written: Any) -> NamedReader:
        """Return the reader of a note or manifest. Earlier versions wrote only the time, and meant all relations."""
        if not isinstance(written, dict):
            return cls(tuple(written))
        of = written.get("of")
        return cls(tuple(written["time"]), None if of is None else frozenset(of))

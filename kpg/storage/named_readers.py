"""Named readers: programs outside the db that return for the changes since their last visit.

A reader of some relations keeps the history of those; a reader that names none keeps the history of all.
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
        """Return the reader as notes and manifests keep it."""
        return {"time": list(self.time), "of": None if self.of is None else sorted(self.of)}

    @classmethod
    def from_json(cls, written: Any) -> NamedReader:
        """Return the reader of a note or manifest. Earlier versions wrote only the time, and meant all relations."""
        if not isinstance(written, dict):
            return cls(tuple(written))
        of = written.get("of")
        return cls(tuple(written["time"]), None if of is None else frozenset(of))

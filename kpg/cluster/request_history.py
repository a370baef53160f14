"""What a new generation of ranks must be told so that it is where the last one was.

    structure   the requests that made inputs, indexes, answers and probes, in their order, without those undone since
    open        the rows of the transaction that is open, and which rank got them

With what is on disk, that is everything: a rank that is lost takes nothing with it that was acknowledged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from kpg.cluster.message import Rows

MAKING = frozenset({"input", "arrangement", "output", "probe"})
UNDOING = frozenset({"release", "drop_input", "close_input"})
STRUCTURAL = MAKING | UNDOING | {"base"}


class InsertedRows(NamedTuple):
    """Rows that one rank was given, or that all were asked to make (rank −1)."""

    rank: int
    request: dict[str, Any]
    blocks: tuple[Rows, ...]


class RequestHistory:
    """The requests so far that still matter."""

    def __init__(self) -> None:
        self.structure: list[dict[str, Any]] = []
        self.open: list[InsertedRows] = []

    def tell(self, rank: int, request: dict[str, Any], blocks: Sequence[Rows]) -> None:
        """Rows of the open transaction were sent."""
        self.open.append(InsertedRows(rank, request, tuple(blocks)))

    def done(self, request: dict[str, Any]) -> None:
        """A request was answered by all ranks."""
        action = request["do"]
        if action == "advance":
            self.open.clear()
        elif action == "make":
            self.tell(-1, request, ())
        elif action == "release" and request["kind"] in ("output", "probe"):
            self._undo(request["kind"], request["name"])
        elif action == "drop_input":
            self._undo("input", request["name"])
            self.structure = [each for each in self.structure if not self._of_input(each, request["name"])]
            self.open = [told for told in self.open if told.request["name"] != request["name"]]
        elif action in STRUCTURAL:
            self.structure.append(request)

    def _undo(self, kind: str, name: Any) -> None:
        label = "number" if kind == "probe" else "name"
        self.structure = [each for each in self.structure if (each["do"], each.get(label)) != (kind, name)]

    def _of_input(self, request: dict[str, Any], name: str) -> bool:
        """Whether a request only made sense with a relation that is gone."""
        if request["do"] in ("close_input", "base"):
            return bool(request["name"] == name)
        gone = {each["number"] for each in self.structure if each["do"] == "arrangement" and each["of"] == name}
        if request["do"] == "arrangement":
            return request["number"] in gone
        return request["do"] == "release" and request["name"] in gone

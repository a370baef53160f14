"""An explanation: text that prints as text, and that a notebook also shows as a drawing of its graph.

    str(explanation)          the text
    explanation.graph         boxes and the edges between them, as plain values that JSON can hold

Drawing is left to `kpg.notebook`; an explanation costs what its text costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, Self

BoxKind = Literal["operators", "arrangement", "dataflow"]


@dataclass(frozen=True, slots=True)
class GraphBox:
    """A box of a drawing: its lines of text, and what it stands for."""

    lines: tuple[str, ...]
    kind: BoxKind = "operators"
    busy: bool = False


@dataclass(frozen=True, slots=True)
class ExplainedGraph:
    """Boxes, and edges between their numbers in the direction of the data; a loop has an edge back."""

    boxes: tuple[GraphBox, ...]
    edges: tuple[tuple[int, int], ...]

    def to_json(self) -> dict[str, Any]:
        """Return the graph as values that JSON can hold."""
        boxes = [{"lines": list(box.lines), "kind": box.kind, "busy": box.busy} for box in self.boxes]
        return {"boxes": boxes, "edges": [list(edge) for edge in self.edges]}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """Return the graph that `to_json` wrote."""
        boxes = tuple(GraphBox(tuple(box["lines"]), box["kind"], box["busy"]) for box in value["boxes"])
        return cls(boxes, tuple((source, target) for source, target in value["edges"]))


class Explanation(str):
    """The text of an explanation, with its graph."""

    graph: ExplainedGraph

    def __new__(cls, text: str, graph: ExplainedGraph) -> Self:
        """Return the text with a graph beside it."""
        explanation = super().__new__(cls, text)
        explanation.graph = graph
        return explanation

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """Return the drawing and the text, for a notebook."""
        drawing = import_module("kpg.notebook.graph_drawing").draw(self.graph)
        return {"text/plain": str(self)} | ({} if drawing is None else {"image/svg+xml": drawing})

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the text as it is, and not as a literal of Python."""
        printer.text(str(self))

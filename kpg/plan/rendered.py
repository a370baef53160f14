"""The results of rendering: streams and arrangements with named lanes, in the scope of a loop.

`Context` holds the parts of the db that rendering needs.
"""

from __future__ import annotations

from dataclasses import dataclass

from kpg.columns.schema import Schema
from kpg.columns.symbols import Symbols
from kpg.columns.value_class import value_class
from kpg.dataflow.graph import Stream
from kpg.operators.arrange import Arranged, Publisher
from kpg.operators.error_rows import ErrorRows
from kpg.plan import nodes
from kpg.plan.placement import Placed
from kpg.trace.merge_policy import MergePolicy


@dataclass(frozen=True, slots=True)
class Context:
    """The parts of the db that rendering needs."""

    symbols: Symbols
    failures: ErrorRows
    merge_policy: MergePolicy
    depth: int  # coordinates of time outside all loops


@value_class
class Rendered:
    """The stream of a collection: its lanes in the order of `schema`, in the scope of `loop`."""

    stream: Stream
    schema: Schema
    loop: nodes.Loop | None
    width: int = 1
    consolidated: bool = False  # whether it carries batches, sorted by the lanes in this order
    placed: Placed = None  # what determines the worker of a row, if known


@value_class
class RenderedArrangement:
    """An arrangement, the names of its lanes (keys first), and the operator that publishes its batches."""

    arranged: Arranged
    schema: Schema
    loop: nodes.Loop | None
    publisher: Publisher | None
    in_place: Placed = None  # what determines the worker of a row, if not the key

    @property
    def placed(self) -> Placed:
        """What determines the worker of a row."""
        return tuple(range(self.arranged.key_lanes)) if self.in_place is None else self.in_place

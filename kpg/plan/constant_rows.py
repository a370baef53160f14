"""Rows of constants: a source that is fed once, when its dataflow is complete, and closed.

The rows are at the least time that every import of the dataflow distinguishes. One worker has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kpg.algebra.frontier import CLOSED
from kpg.columns.table_rows import encode
from kpg.columns.updates import Updates, constant
from kpg.dataflow.operator import Message
from kpg.operators.source import Source
from kpg.plan import nodes
from kpg.plan.rendered import Rendered

if TYPE_CHECKING:
    from kpg.plan.render import Renderer


def render_values(renderer: Renderer, node: nodes.ValuesNode) -> tuple[Rendered, Source]:
    """Return the stream of constant rows, and the source to feed them into."""
    source = Source("values")
    stream = renderer.dataflow.add_source(source, lambda: CLOSED, depth=renderer.context.depth)
    return Rendered(stream, node.schema, None), source


def feed_values(renderer: Renderer, node: nodes.ValuesNode, source: Source) -> None:
    """Feed the rows, on one of the workers."""
    if renderer.dataflow.worker.index == 0 and node.rows:
        data = encode(node.schema, list(node.rows), renderer.context.symbols)
        time = renderer.floor.time
        diffs = np.ones((1, data.shape[1]), np.int64)
        renderer.dataflow.feed(source, Message((time,), Updates(data, constant(time), diffs)))

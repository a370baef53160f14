"""The operators of one dataflow and the channels between them, as plain values: its graph, with the time each has used.

An operator that imports an arrangement names it and the dataflow that publishes it, so the graphs of several dataflows
can be joined. Cost: one visit of every operator of the dataflow, and of the batches that it keeps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kpg.dataflow.graph import Dataflow
from kpg.dataflow.operator import Operator
from kpg.operators.source import Source

if TYPE_CHECKING:
    from kpg.api.embedded_database import EmbeddedDatabase


def describe_operators(db: EmbeddedDatabase, dataflow: str) -> dict[str, Any]:
    """Return the operators and channels of all dataflows with a name, numbered through; empty if there are none."""
    operators: list[dict[str, Any]] = []
    channels: list[tuple[int, int]] = []
    for _, one in sorted(db.worker.dataflows.items()):
        if one.name == dataflow:
            first = len(operators)
            operators += [describe_operator(operator, first + operator.index) for operator in one.operators]
            channels += [(first + source, first + target) for source, target in channels_of(one)]
    return {"operators": operators, "channels": channels}


def describe_operator(operator: Operator, number: int) -> dict[str, Any]:
    """Return the name, loop depth, CPU time and state of an operator."""
    rows, nbytes = operator.state_size()
    publisher = operator.publisher if isinstance(operator, Source) else None
    return {
        "operator": number,
        "name": operator.name,
        "depth": operator.depth,
        "cpu_seconds": operator.cpu_seconds,
        "rows": rows,
        "bytes": nbytes,
        "busy": operator.scheduled,
        "imports_from": None if publisher is None else publisher.dataflow.name,
    }


def channels_of(dataflow: Dataflow) -> list[tuple[int, int]]:
    """Return the operators that each channel connects, by their numbers in the dataflow."""
    return [
        (operator.index, channel.target.index)
        for operator in dataflow.operators
        for port in operator.channels
        for channel in port
    ]

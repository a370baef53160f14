"""The sizes of a program's relations while they are computed: for progress, and for the error of the memory limit.

The size of a relation is that of the largest state among the operators that compute it: derived rows, or rows that wait
to be made distinct. Operators outside of programs count under the name of their dataflow.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kpg.dataflow.graph import Dataflow
from kpg.dataflow.worker import Worker

LARGEST_SHOWN = 3  # relations that an error names


class RelationSize(NamedTuple):
    """The rows of a relation, and the memory of the operators that compute it."""

    rows: int
    nbytes: int


def relation_sizes(dataflows: Iterable[Dataflow]) -> dict[str, RelationSize]:
    """Return the sizes of all relations that programs compute at the moment."""
    sizes: dict[str, RelationSize] = {}
    for dataflow in dataflows:
        for operator in dataflow.operators:
            for name, rows, nbytes in operator.relation_sizes():
                before = sizes.get(name, RelationSize(0, 0))
                sizes[name] = RelationSize(max(before.rows, rows), before.nbytes + nbytes)
    return sizes


def unnamed_sizes(dataflows: Iterable[Dataflow]) -> dict[str, RelationSize]:
    """Return the sizes of what operators outside of programs keep, by dataflow."""
    sizes: dict[str, RelationSize] = {}
    for dataflow in dataflows:
        for operator in dataflow.operators:
            if not operator.relations:
                rows, nbytes = operator.state_size()
                before = sizes.get(dataflow.name, RelationSize(0, 0))
                sizes[dataflow.name] = RelationSize(max(before.rows, rows), before.nbytes + nbytes)
    return sizes


def describe_largest(worker: Worker) -> str:
    """Name the relation that a worker computes, and the relations that hold the most memory, with their row counts."""
    dataflows = list(worker.dataflows.values())
    sizes = unnamed_sizes(dataflows) | relation_sizes(dataflows)
    largest = sorted(sizes, key=lambda name: -sizes[name].nbytes)[:LARGEST_SHOWN]
    shown = ", ".join(f"{name} with {sizes[name].rows:,} rows" for name in largest if sizes[name].rows)
    computing = "" if worker.current is None else ", ".join(worker.current.relations)
    parts = [f"It was computing {computing}."] if computing else []
    return " ".join([*parts, f"The largest relations are {shown}."] if shown else parts)

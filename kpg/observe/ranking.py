"""Operators and dataflows ranked by the time they took, with the sizes of their arrangements.

operators_of(figures)          installed operators, the most expensive first
dataflows_of(operators)        their sums by dataflow
format_operators(operators)    a text table
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kpg.api.explain_dataflow import align_rows, size
from kpg.events import DATAFLOW_BITS, PART_BITS
from kpg.observe import attributes as event_log
from kpg.observe.figures import Figures


class OperatorFigures(NamedTuple):
    """The steps and time of an operator, and the size of its arrangement, if it has one."""

    entity: int
    dataflow: str
    name: str
    steps: int
    seconds: float
    rows: int
    nbytes: int

    @property
    def worker(self) -> int:
        """The number of the worker that runs it."""
        return self.entity >> PART_BITS >> DATAFLOW_BITS


class DataflowFigures(NamedTuple):
    """The sums over the operators of a dataflow on one worker."""

    entity: int
    name: str
    steps: int
    seconds: float
    rows: int
    nbytes: int


def operators_of(figures: Figures) -> list[OperatorFigures]:
    """Return all installed operators, the most expensive first."""
    name, dataflow, dropped = figures.of(event_log.NAME), figures.of(event_log.DATAFLOW), figures.of(event_log.SHUTDOWN)
    steps, spent = figures.of(event_log.STEPS), figures.of(event_log.SPENT)
    rows, nbytes = figures.of(event_log.SIZE), figures.of(event_log.BYTES)
    operators = [
        OperatorFigures(
            entity,
            name[dataflow[entity]],
            name[entity],
            steps.get(entity, 0),
            spent.get(entity, 0) / 1e9,
            rows.get(entity, 0),
            nbytes.get(entity, 0),
        )
        for entity in figures.of(event_log.LOCAL_ID)
        if entity not in dropped
    ]
    return sorted(operators, key=lambda operator: -operator.seconds)


def dataflows_of(operators: Sequence[OperatorFigures]) -> list[DataflowFigures]:
    """Return the sums of operators by dataflow, the most expensive first."""
    sums: dict[int, DataflowFigures] = {}
    for operator in operators:
        entity = operator.entity >> PART_BITS << PART_BITS
        total = sums.get(entity, DataflowFigures(entity, operator.dataflow, 0, 0.0, 0, 0))
        sums[entity] = DataflowFigures(
            entity, operator.dataflow, total.steps + operator.steps, total.seconds + operator.seconds,
            total.rows + operator.rows, total.nbytes + operator.nbytes,
        )  # fmt: skip
    return sorted(sums.values(), key=lambda dataflow: -dataflow.seconds)


def format_operators(operators: Sequence[OperatorFigures], most: int = 10) -> str:
    """Return the first `most` operators as a text table."""
    lines = [
        [f"{row.seconds * 1e3:.3f}", f"{row.steps:,}", f"{row.rows:,}", size(row.nbytes), row.dataflow, row.name]
        for row in operators[:most]
    ]
    return "\n".join(align_rows(["ms", "steps", "rows", "bytes", "dataflow", "operator"], lines))

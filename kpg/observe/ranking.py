"""What the log knows, for people: operators and dataflows by the time they took, and what their arrangements hold.

operators_of(figures)      those that are there, the most expensive first
dataflows_of(operators)    their sums
shown(operators)           as lines of text, in columns
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kpg.api.explain_dataflow import aligned, size
from kpg.events import PART_BITS
from kpg.observe import attributes as event_log
from kpg.observe.figures import Figures


class OperatorFigures(NamedTuple):
    """What is known of one operator: its time in seconds, and what its arrangement holds, if it has one."""

    entity: int
    dataflow: str
    name: str
    steps: int
    seconds: float
    rows: int
    nbytes: int


class DataflowFigures(NamedTuple):
    """What is known of one dataflow: the sums over its operators."""

    entity: int
    name: str
    steps: int
    seconds: float
    rows: int
    nbytes: int


def operators_of(figures: Figures) -> list[OperatorFigures]:
    """All operators that are there, those that took the most time first."""
    name, own, gone = figures.of(event_log.NAME), figures.of(event_log.DATAFLOW), figures.of(event_log.SHUTDOWN)
    steps, spent = figures.of(event_log.STEPS), figures.of(event_log.SPENT)
    rows, nbytes = figures.of(event_log.SIZE), figures.of(event_log.BYTES)
    found = [
        OperatorFigures(
            each,
            name[own[each]],
            name[each],
            steps.get(each, 0),
            spent.get(each, 0) / 1e9,
            rows.get(each, 0),
            nbytes.get(each, 0),
        )  # fmt: skip
        for each in figures.of(event_log.LOCAL_ID)
        if each not in gone
    ]
    return sorted(found, key=lambda each: -each.seconds)


def dataflows_of(operators: Sequence[OperatorFigures]) -> list[DataflowFigures]:
    """The dataflows of operators, those that took the most time first."""
    sums: dict[int, DataflowFigures] = {}
    for each in operators:
        entity = each.entity >> PART_BITS << PART_BITS
        so_far = sums.get(entity, DataflowFigures(entity, each.dataflow, 0, 0.0, 0, 0))
        sums[entity] = DataflowFigures(
            entity, each.dataflow, so_far.steps + each.steps, so_far.seconds + each.seconds,
            so_far.rows + each.rows, so_far.nbytes + each.nbytes,
        )  # fmt: skip
    return sorted(sums.values(), key=lambda each: -each.seconds)


def shown(operators: Sequence[OperatorFigures], most: int = 10) -> str:
    """The first of some operators as a table."""
    lines = [
        [f"{each.seconds * 1e3:.3f}", f"{each.steps:,}", f"{each.rows:,}", size(each.nbytes), each.dataflow, each.name]
        for each in operators[:most]
    ]
    return "\n".join(aligned(["ms", "steps", "rows", "bytes", "dataflow", "operator"], lines))

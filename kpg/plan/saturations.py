"""Render recursive rules as one operator: on the only worker, on each worker, or on one of several.

On several workers, a recursion that can be divided by a column (`kpg.seminaive.division`) runs on each of them, with
the rows of its values of this column. Rows that are not divided go to all workers. Nothing is exchanged between rounds.
All other recursions run on one worker, which receives their rows and has all that they derive (`OneWorker`): the number
of the dataflow decides on which, so that several recursions do not meet on one. Both are as fast as on one worker at
least, where a loop, which exchanges rows and progress in every round, is not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kpg.columns.schema import Schema
from kpg.dataflow.channel import LocalPact, Pact
from kpg.operators.saturate import saturate
from kpg.plan import nodes
from kpg.plan.placement import OneWorker
from kpg.plan.reachable_rows import render_reachable
from kpg.plan.rendered import Rendered
from kpg.seminaive.division import Division, division_of

if TYPE_CHECKING:
    from kpg.plan.render import Renderer


def render_saturation(renderer: Renderer, saturation: nodes.SaturationSpec) -> list[Rendered]:
    """Return the relations that a recursion derives; a single operator derives all of them."""
    inputs = saturation.inputs
    parts = [renderer.reorder(renderer.collection(inner), inner.schema) for inner in inputs]
    reachable = render_reachable(renderer, saturation, parts)
    if reachable is not None:
        derived = [reachable]
    elif renderer.is_alone:
        derived = render_with(renderer, saturation, parts, [LocalPact()] * len(parts), None)
    else:
        division = division_of(saturation.system)
        derived = render_on_workers(renderer, saturation, parts, division)
        where = "one worker derives all rows: no column stays the same in all rules"
        if division is not None:
            names = ", ".join(
                f"{name}.{schema_of(saturation, relation).names[column or 0]}"
                for relation, (name, column) in enumerate(zip(saturation.names, division.columns, strict=False))
            )
            where = f"each worker derives the rows of its values of {names}"
        renderer.dataflow.notes.append(f"{saturation.system.name} is one operator: {where}")
    renderer.dataflow.operators[-1].relations = saturation.names
    return derived


def schema_of(saturation: nodes.SaturationSpec, relation: int) -> Schema:
    """Return the schema of a relation."""
    return saturation.inputs[relation].schema


def render_on_workers(
    renderer: Renderer, saturation: nodes.SaturationSpec, parts: list[Rendered], division: Division | None
) -> list[Rendered]:
    """Render a recursion on several workers."""
    if division is None:
        home = renderer.home_worker
        pacts = [renderer.to_worker(part.schema, home) for part in parts]
        return [
            replace(derived, placed=OneWorker(home))
            for derived in render_with(renderer, saturation, parts, pacts, None)
        ]
    parts = [parts[source] for source in division.inputs]
    pacts = [
        renderer.to_worker(part.schema, None) if column is None else renderer.by_lane(part, column)
        for part, column in zip(parts, division.columns, strict=True)
    ]
    return render_with(renderer, saturation, parts, pacts, division)


def render_with(
    renderer: Renderer,
    saturation: nodes.SaturationSpec,
    parts: list[Rendered],
    pacts: list[Pact],
    division: Division | None,
) -> list[Rendered]:
    """Add the operator, with inputs that arrive as some pacts say."""
    system = saturation.system if division is None else division.system
    inputs = [(part.stream, pact) for part, pact in zip(parts, pacts, strict=True)]
    streams = saturate(renderer.dataflow, system, inputs, [part.schema for part in parts])
    placed = [None if division is None else (division.columns[relation] or 0,) for relation in range(system.derived)]
    return [
        Rendered(stream, schema_of(saturation, relation), None, placed=placed[relation])
        for relation, stream in enumerate(streams)
    ]

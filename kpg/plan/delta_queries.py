"""Delta queries: heads that write down initial times, and steps that extend tuples by indexes.

On one worker all extenders of a step are one operator, which intersects what they hold. On several, no worker has the
keys of all: each weighs in turn, the one with the fewest rows proposes, and each other validates, with an exchange by
its key before each. Where an extender has at most one row of each key, nothing needs to be weighed: it proposes.

An index by some columns is any arrangement whose lanes begin with them if there is one worker, since it is sorted by
all its lanes; on several it must be by exactly these, which decide where rows are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kpg.columns.bind import bind
from kpg.columns.expression import Expression
from kpg.columns.schema import INT64, Schema
from kpg.dataflow.channel import FollowPact, LocalPact, Pact
from kpg.dataflow.graph import Stream
from kpg.errors import BadPlan
from kpg.operators.choose_extender import WEIGHED, ChooseExtender, ChosenStage
from kpg.operators.delta_source import DeltaSource
from kpg.operators.half_join import ExtenderIndex, HalfJoin
from kpg.plan import nodes
from kpg.plan.rendered import Rendered, RenderedArrangement
from kpg.trace.extension import Extender, ExtensionShape

if TYPE_CHECKING:
    from kpg.plan.render import Renderer

NONE = Schema((), ())
ROUND = "$@"  # how the names of the columns begin that hold the rounds of initial times


def rounds_of(loops: frozenset[nodes.Loop]) -> dict[str, Any]:
    """The columns for the rounds of initial times in a scope."""
    depth = max((loop.depth() for loop in loops), default=0)
    return {f"{ROUND}{number}": INT64 for number in range(1, depth + 1)}


def render_changes(renderer: Renderer, node: nodes.DeltaSourceNode) -> Rendered:
    """The head of a delta query."""
    if renderer.context.depth != 1:
        raise BadPlan("delta queries need times of one coordinate", hint="Use binary joins for multi-temporal inputs.")
    found = renderer.reorder(renderer.collection_in(node.input, node.scope()), node.input.schema)
    if len(node.schema) - len(node.input.schema) != found.stream.depth - 1:
        raise BadPlan("a delta query was made before it was known how deep its loop is nested")
    operator = DeltaSource("changes", renderer.floor)
    stream = renderer.dataflow.add(operator, [(found.stream, LocalPact())], depth=found.stream.depth)
    return Rendered(stream, node.schema, node.scope())


@dataclass(frozen=True, slots=True)
class Said:
    """An extender and its index, in the scope of the step."""

    extender: nodes.ExtenderSpec
    index: RenderedArrangement

    @property
    def new(self) -> list[str]:
        """The columns beyond the key."""
        return list(self.index.schema.names[len(self.extender.key) :])


def render_extend(renderer: Renderer, node: nodes.ExtendNode) -> Rendered:
    """A step of a delta query."""
    tuples = renderer.reorder(renderer.collection_in(node.input, node.scope()), _rounds_last(node.input.schema))
    alone = renderer.dataflow.worker.peers == 1  # else what is not here may be elsewhere
    gates = [Said(each, _index(renderer, each, node.scope())) for each in node.gates if alone]
    said = [Said(each, _index(renderer, each, node.scope())) for each in node.extenders]
    if alone or len(said) == 1:
        return _extended(renderer, tuples, node, said, gates)
    return _across_workers(renderer, tuples, node, said)


def _rounds_last(schema: Schema) -> Schema:
    """The columns in the order that operators expect."""
    return schema.select(sorted(schema.names, key=lambda name: name.startswith(ROUND)))


def index_of(renderer: Renderer, extender: nodes.ExtenderSpec) -> tuple[str, ...]:
    """The key of the arrangement that an extender is read from."""
    keys = tuple(column for _, column in extender.key)
    node = extender.node
    if renderer.dataflow.worker.peers > 1:
        return keys or node.schema.names  # what is a key by nothing would be on one worker; so it only validates
    match node:
        case nodes.ReduceNode() if node.reduction.kind == "presence" and node.schema.names[: len(keys)] == keys:
            return node.keys
        case nodes.RelationNode() | nodes.InstalledNode() if node.owner.arranged_by(keys) is None:
            base = node.owner.base()
            return base.keys if base.schema.names[: len(keys)] == keys else keys
    return keys


def _index(renderer: Renderer, extender: nodes.ExtenderSpec, loop: nodes.Loop | None) -> RenderedArrangement:
    found = renderer.arranged_in(extender.node, index_of(renderer, extender), loop)
    assert found.arranged.width == 1, "diffs of an extender are plain numbers"
    return found


def _extended(
    renderer: Renderer, tuples: Rendered, node: nodes.ExtendNode, said: Sequence[Said], gates: Sequence[Said] = ()
) -> Rendered:
    """One operator, which has all extenders at hand."""
    known = [_known(renderer, each, tuples.schema) for each in said]
    later = [_known(renderer, each, tuples.schema) for each in gates]
    new = said[0].new
    projection = [(0, tuples.schema.index(name)) if side == 0 else (1, new.index(name)) for side, name in node.columns]
    low, high = (-1 if name is None else tuples.schema.index(name) for name in (node.low, node.high))
    shape = ExtensionShape(len(new), np.array(projection, np.int64).reshape(-1, 2), low, high)
    verb = "extend" if new else "validate"
    label = f"{verb} by {len(said)}" if len(said) > 1 else "half join"
    indexes = [
        [
            ExtenderIndex(each.index.arranged, extender, f"{label} of {renderer.dataflow.name}")
            for each, extender in zip(*pair, strict=True)
        ]
        for pair in ((said, known), (gates, later))
    ]
    operator = HalfJoin(label, indexes[0], indexes[1], shape, renderer.floor)
    operator.schema = tuples.schema
    first, *others = [each.index.arranged.stream for each in (*said, *gates)]
    pact = _pact(renderer, tuples.schema, said[0], known[0])
    inputs: list[tuple[Stream, Pact]] = [(tuples.stream, pact), (first.concat(*others), FollowPact())]
    stream = renderer.dataflow.add(operator, inputs, depth=tuples.stream.depth)
    return Rendered(stream, node.schema, tuples.loop)


def _known(renderer: Renderer, said: Said, schema: Schema) -> Extender:
    """An extender in terms of lanes; one that is a gate is not looked up by key."""
    lanes: list[int] = []
    constants: list[int] = []
    for (value, column), type_ in zip(said.extender.key, said.index.schema.types, strict=False):
        if isinstance(value, Expression):
            bound = bind(value, NONE, renderer.context.symbols)
            if bound.type != type_:
                raise BadPlan(f"{value!r} is no {type_}", detail=f"It is compared with column {column}.")
            lanes.append(-1)
            constants.append(int(bound.evaluate(np.empty((0, 1), np.int64)).values[0]))
        else:
            lanes.append(schema.index(value) if value in schema.names else -1)
            constants.append(0)
    return Extender(tuple(lanes), tuple(constants), said.extender.strict, said.extender.negative)


def _pact(renderer: Renderer, schema: Schema, said: Said, known: Extender) -> Pact:
    """To the worker whose index has the key: all of it, or what the arrangement is by."""
    keys = said.index.arranged.key_lanes
    return renderer.by_lanes(schema, known.lanes[:keys], known.constants[:keys], said.index.schema.types[:keys])


def _across_workers(renderer: Renderer, tuples: Rendered, node: nodes.ExtendNode, said: Sequence[Said]) -> Rendered:
    """Weigh, propose, validate: one operator each, on the worker that has the key."""
    if not said[0].new:
        return _validated(renderer, tuples, node, said)
    proposers = [each for each in said if not each.extender.negative and each.extender.key]
    single = [each for each in proposers if each.extender.single][:1]
    if single or len(proposers) == 1:
        return _proposed(renderer, tuples, node, (single or proposers)[0], said)
    weighed = tuples
    for number, each in enumerate(proposers):
        known = _known(renderer, each, weighed.schema)
        index = ExtenderIndex(each.index.arranged, known, f"weigh of {renderer.dataflow.name}")
        pact = _pact(renderer, weighed.schema, each, known)
        stream = renderer.dataflow.add(
            ChooseExtender("weigh", index, number), [(weighed.stream, pact)], depth=tuples.stream.depth
        )
        weighed = replace(weighed, stream=stream, schema=_weighed_schema(tuples.schema), tidy=False, placed=None)
    parts = []
    for number, each in enumerate(proposers):
        mine = renderer.add_stages(weighed, [ChosenStage(number)], "chosen", tuples.schema)
        parts.append(_proposed(renderer, mine, node, each, said))
    return replace(parts[0], stream=parts[0].stream.concat(*[part.stream for part in parts[1:]]))


def _weighed_schema(schema: Schema) -> Schema:
    names = tuple(f"weighed {place}" for place in range(WEIGHED))
    return Schema(names + schema.names, (INT64,) * WEIGHED + schema.types)


def _proposed(renderer: Renderer, tuples: Rendered, node: nodes.ExtendNode, by: Said, said: Sequence[Said]) -> Rendered:
    """The proposals of one extender, validated by the others."""
    new = said[0].new[0]
    columns = [(0, name) for name in tuples.schema.names]
    value = "= new"
    rounds = tuples.stream.depth - 1
    place = len(columns) - rounds  # rounds stay last
    columns.insert(place, (1, by.new[0]))
    names, types = list(tuples.schema.names), list(tuples.schema.types)
    names.insert(place, value)
    types.insert(place, by.index.schema.type_of(by.new[0]))
    wide = replace(node, schema=Schema(tuple(names), tuple(types)), columns=tuple(columns))
    proposed = _extended(renderer, tuples, wide, [by])
    others = [
        Said(replace(each.extender, key=(*each.extender.key, (value, each.new[0]))), each.index)
        for each in said
        if each is not by
    ]
    made = tuple((0, value if side == 1 and name == new else name) for side, name in node.columns)
    return _validated(renderer, proposed, replace(node, columns=made, low=None, high=None), others)


def _validated(renderer: Renderer, tuples: Rendered, node: nodes.ExtendNode, said: Sequence[Said]) -> Rendered:
    """The tuples that each extender in turn lets through."""
    for each in said[:-1]:
        columns = tuple((0, name) for name in tuples.schema.names)
        same = replace(node, schema=tuples.schema, columns=columns, low=None, high=None)
        tuples = _extended(renderer, tuples, same, [each])
    return _extended(renderer, tuples, node, said[-1:])

"""Delta queries: sources that record the initial time of each change, and steps that extend tuples by indexes.

On one worker, a step is one operator that intersects the rows of all extenders. On several workers, the rows for a
tuple may be on a different worker for each extender. So the step becomes several operators, each after an exchange by
the key of its extender: every extender counts its candidates, the one with the fewest proposes, and the others
validate. An extender with at most one row for each key proposes without counting. A new column of several lanes takes
the same way on one worker, because the operator for all extenders intersects a single lane.

On one worker an index by some columns is any arrangement with these columns as its first lanes, since it is sorted by
all of its lanes. On several workers the key must be exactly these columns, because the key determines the worker.
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
from kpg.operators.choose_extender import COUNT_LANES, ChooseExtender, ChosenStage
from kpg.operators.delta_source import DeltaSource
from kpg.operators.half_join import ExtenderIndex, HalfJoin
from kpg.plan import nodes
from kpg.plan.rendered import Rendered, RenderedArrangement
from kpg.trace.extension import Extender, ExtensionShape

if TYPE_CHECKING:
    from kpg.plan.render import Renderer

NO_COLUMNS = Schema((), ())
ROUND_PREFIX = "$@"  # prefix of the columns that hold the rounds of initial times


def rounds_of(loops: frozenset[nodes.Loop]) -> dict[str, Any]:
    """Return the columns that hold the rounds of initial times in a scope."""
    depth = max((loop.depth() for loop in loops), default=0)
    return {f"{ROUND_PREFIX}{number}": INT64 for number in range(1, depth + 1)}


def render_delta_source(renderer: Renderer, node: nodes.DeltaSourceNode) -> Rendered:
    """Render the source of a delta query."""
    if renderer.context.depth != 1:
        raise BadPlan("delta queries need times of one coordinate", hint="Use binary joins for multi-temporal inputs.")
    changes = renderer.reorder(renderer.collection_in(node.input, node.scope()), node.input.schema)
    if len(node.schema) - len(node.input.schema) != changes.stream.depth - 1:
        raise BadPlan("a delta query was built before the nesting depth of its loop was known")
    operator = DeltaSource("changes", renderer.floor)
    stream = renderer.dataflow.add(operator, [(changes.stream, LocalPact())], depth=changes.stream.depth)
    return Rendered(stream, node.schema, node.scope())


@dataclass(frozen=True, slots=True)
class IndexedExtender:
    """An extender and its index, in the scope of the step."""

    spec: nodes.ExtenderSpec
    index: RenderedArrangement

    @property
    def values(self) -> list[str]:
        """The columns beyond the key."""
        return list(self.index.schema.names[len(self.spec.key) :])

    @property
    def value_lanes(self) -> int:
        """The number of lanes beyond the key."""
        return self.index.schema.width - self.index.schema.width_of(len(self.spec.key))


def render_extend(renderer: Renderer, node: nodes.ExtendNode) -> Rendered:
    """Render a step of a delta query."""
    tuples = renderer.reorder(renderer.collection_in(node.input, node.scope()), _rounds_last(node.input.schema))
    one_worker = renderer.dataflow.worker.peers == 1  # with several, a row missing here may be on another worker
    gates = [IndexedExtender(spec, _index(renderer, spec, node.scope())) for spec in node.gates if one_worker]
    extenders = [IndexedExtender(spec, _index(renderer, spec, node.scope())) for spec in node.extenders]
    if len(extenders) == 1 or (one_worker and extenders[0].value_lanes <= 1):
        return _extend_here(renderer, tuples, node, extenders, gates)
    return _extend_in_turn(renderer, tuples, node, extenders)


def _rounds_last(schema: Schema) -> Schema:
    """Return the columns in the order that operators expect: rounds last."""
    return schema.select(sorted(schema.names, key=lambda name: name.startswith(ROUND_PREFIX)))


def index_of(renderer: Renderer, spec: nodes.ExtenderSpec) -> tuple[str, ...]:
    """Return the key of the arrangement that an extender reads."""
    keys = tuple(column for _, column in spec.key)
    node = spec.node
    if renderer.dataflow.worker.peers > 1:
        return keys or node.schema.names  # an empty key would put all rows on one worker; so it only validates
    match node:
        case nodes.ReduceNode() if node.reduction.kind == "presence" and node.schema.names[: len(keys)] == keys:
            return node.keys
        case nodes.ArrangeNode() if node.keys[: len(keys)] == keys:
            return node.keys
        case nodes.RelationNode() | nodes.InstalledNode() if node.owner.arranged_by(keys) is None:
            base = node.owner.base()
            return base.keys if base.schema.names[: len(keys)] == keys else keys
    return keys


def _index(renderer: Renderer, spec: nodes.ExtenderSpec, loop: nodes.Loop | None) -> RenderedArrangement:
    index = renderer.arranged_in(spec.node, index_of(renderer, spec), loop)
    assert index.arranged.width == 1, "diffs of an extender are plain numbers"
    return index


def _extend_here(
    renderer: Renderer,
    tuples: Rendered,
    node: nodes.ExtendNode,
    extenders: Sequence[IndexedExtender],
    gates: Sequence[IndexedExtender] = (),
) -> Rendered:
    """Add one operator that reads the indexes of all extenders on its own worker."""
    bound = [_bind_extender(renderer, extender, tuples.schema) for extender in extenders]
    bound_gates = [_bind_extender(renderer, gate, tuples.schema) for gate in gates]
    new = extenders[0].index.schema.select(extenders[0].values)
    projection = [
        (side, lane) for side, name in node.columns for lane in (tuples.schema if side == 0 else new).lanes_of((name,))
    ]
    low, high = (_bound(tuples.schema, name) for name in (node.low, node.high))
    shape = ExtensionShape(new.width, np.array(projection, np.int64).reshape(-1, 2), low, high)
    verb = "extend" if len(new) else "validate"
    label = f"{verb} by {len(extenders)}" if len(extenders) > 1 else "half join"
    indexes = [
        [
            ExtenderIndex(indexed.index.arranged, extender, f"{label} of {renderer.dataflow.name}")
            for indexed, extender in zip(*pair, strict=True)
        ]
        for pair in ((extenders, bound), (gates, bound_gates))
    ]
    operator = HalfJoin(label, indexes[0], indexes[1], shape, renderer.floor)
    operator.schema = tuples.schema
    first, *others = [indexed.index.arranged.stream for indexed in (*extenders, *gates)]
    pact = _pact(renderer, tuples.schema, extenders[0], bound[0])
    inputs: list[tuple[Stream, Pact]] = [(tuples.stream, pact), (first.concat(*others), FollowPact())]
    stream = renderer.dataflow.add(operator, inputs, depth=tuples.stream.depth)
    return Rendered(stream, node.schema, tuples.loop)


def _bound(schema: Schema, name: str | None) -> int:
    """Return the lane of a bound of the new column; -1 if there is none."""
    if name is None:
        return -1
    if schema.type_of(name).lanes > 1:
        raise BadPlan(f"a column of type {schema.type_of(name)} cannot bound another one in a delta query")
    return schema.lane_of(name)


def _bind_extender(renderer: Renderer, indexed: IndexedExtender, schema: Schema) -> Extender:
    """Return an extender in terms of lanes of the tuples. A gate is not looked up, so its lanes may be unknown."""
    lanes: list[int] = []
    constants: list[int] = []
    for (value, column), type_ in zip(indexed.spec.key, indexed.index.schema.types, strict=False):
        if isinstance(value, Expression):
            bound = bind(value, NO_COLUMNS, renderer.context.symbols)
            if bound.type != type_:
                raise BadPlan(f"{value!r} is not of type {type_}", detail=f"It is compared with column {column}.")
            lanes += [-1] * type_.lanes
            constants += bound.evaluate(np.empty((0, 1), np.int64)).values.ravel().tolist()
        else:
            lanes += schema.lanes_of((value,)) if value in schema.names else [-1] * type_.lanes
            constants += [0] * type_.lanes
    return Extender(tuple(lanes), tuple(constants), indexed.spec.strict, indexed.spec.negative)


def _pact(renderer: Renderer, schema: Schema, indexed: IndexedExtender, extender: Extender) -> Pact:
    """Return the pact that sends tuples to the worker that has their key in the index."""
    keys = indexed.index.arranged.key_lanes
    types = indexed.index.schema.lane_types()[:keys]
    return renderer.by_lanes(schema, extender.lanes[:keys], extender.constants[:keys], types)


def _extend_in_turn(
    renderer: Renderer, tuples: Rendered, node: nodes.ExtendNode, extenders: Sequence[IndexedExtender]
) -> Rendered:
    """Count, propose, validate: one operator for each extender, on the worker that has the key."""
    if not extenders[0].values:
        return _validate(renderer, tuples, node, extenders)
    proposers = [extender for extender in extenders if not extender.spec.negative and extender.spec.key]
    single = [proposer for proposer in proposers if proposer.spec.single][:1]
    if single or len(proposers) == 1:
        return _propose(renderer, tuples, node, (single or proposers)[0], extenders)
    weighed = tuples
    for number, proposer in enumerate(proposers):
        bound = _bind_extender(renderer, proposer, weighed.schema)
        index = ExtenderIndex(proposer.index.arranged, bound, f"weigh of {renderer.dataflow.name}")
        pact = _pact(renderer, weighed.schema, proposer, bound)
        stream = renderer.dataflow.add(
            ChooseExtender("weigh", index, number), [(weighed.stream, pact)], depth=tuples.stream.depth
        )
        weighed = replace(
            weighed, stream=stream, schema=_weighed_schema(tuples.schema), consolidated=False, placed=None
        )
    parts = []
    for number, proposer in enumerate(proposers):
        chosen = renderer.add_stages(weighed, [ChosenStage(number)], "chosen", tuples.schema)
        parts.append(_propose(renderer, chosen, node, proposer, extenders))
    return replace(parts[0], stream=parts[0].stream.concat(*[part.stream for part in parts[1:]]))


def _weighed_schema(schema: Schema) -> Schema:
    names = tuple(f"weighed {lane}" for lane in range(COUNT_LANES))
    return Schema(names + schema.names, (INT64,) * COUNT_LANES + schema.types)


def _propose(
    renderer: Renderer,
    tuples: Rendered,
    node: nodes.ExtendNode,
    proposer: IndexedExtender,
    extenders: Sequence[IndexedExtender],
) -> Rendered:
    """Let one extender propose values, and the others validate them."""
    new = extenders[0].values[0]
    columns = [(0, name) for name in tuples.schema.names]
    value = "= new"
    rounds = tuples.stream.depth - 1
    position = len(columns) - rounds  # rounds stay last
    columns.insert(position, (1, proposer.values[0]))
    names, types = list(tuples.schema.names), list(tuples.schema.types)
    names.insert(position, value)
    types.insert(position, proposer.index.schema.type_of(proposer.values[0]))
    wide = replace(node, schema=Schema(tuple(names), tuple(types)), columns=tuple(columns))
    proposed = _extend_here(renderer, tuples, wide, [proposer])
    validators = [
        IndexedExtender(replace(other.spec, key=(*other.spec.key, (value, other.values[0]))), other.index)
        for other in extenders
        if other is not proposer
    ]
    outputs = tuple((0, value if side == 1 and name == new else name) for side, name in node.columns)
    return _validate(renderer, proposed, replace(node, columns=outputs, low=None, high=None), validators)


def _validate(
    renderer: Renderer, tuples: Rendered, node: nodes.ExtendNode, extenders: Sequence[IndexedExtender]
) -> Rendered:
    """Filter tuples through each extender in turn."""
    for extender in extenders[:-1]:
        columns = tuple((0, name) for name in tuples.schema.names)
        same = replace(node, schema=tuples.schema, columns=columns, low=None, high=None)
        tuples = _extend_here(renderer, tuples, same, [extender])
    return _extend_here(renderer, tuples, node, extenders[-1:])

"""Lower a rule's delta pipelines to a collection: the sum over atoms of the solutions that the atom's changes add.

    rows of the head  =  Σ over atoms i  of  changes of atom i, extended by the atoms j: by rows at strictly earlier
                                             times where j > i, and at the same time as well where j < i

So when several atoms change at one time, exactly one change, that of the last atom, finds all others. Pipelines use the
indexes of the relations themselves. A negated atom stands for one minus its relation: its changes are negated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kpg.columns.functions import col, lit
from kpg.columns.schema import Schema
from kpg.plan import nodes
from kpg.plan.delta_queries import rounds_of
from kpg.query.delta_pipelines import DeltaPipeline, EqualNamesStep, ExtendStep, PipelineSource, SourceLookup
from kpg.query.ir.fallible_terms import term_can_fail
from kpg.query.ir.terms import ConstantTerm
from kpg.query.join_strategy import RulePlan
from kpg.query.lower.lower_rule import Bindings, RuleContext, build_step, head_rows, project
from kpg.query.lower.unit_input import UNIT

if TYPE_CHECKING:
    from kpg.api.collection import Collection


def build_pipelines(plan: RulePlan, context: RuleContext) -> Collection:
    """Return the rows of a rule's head, under the column names of its relation.

    An expression that can fail is evaluated on the solutions of all pipelines together. A tuple that one pipeline adds
    and another removes then adds and removes the same error.
    """
    loops = loops_of(plan, context)
    parts = [build_pipeline(plan, pipeline, context, loops) for pipeline in plan.pipelines]
    columns = context.relations[plan.rule.head.relation].columns
    is_checked = any(column.range is not None for column in columns)
    if not plan.steps and not is_checked and not any(map(term_can_fail, plan.rule.head.arguments)):
        rows = [head_rows(part, plan, context) for part in parts]
        return rows[0].concat(*rows[1:])
    common = frozenset(parts[0].names).intersection(*[part.names for part in parts])
    names = frozenset(name for name in common if not name.startswith("@"))  # those that are read, and perhaps more
    first, *rest = [project(part, names, {}) for part in parts]
    bindings = Bindings(first.rows.concat(*[part.rows for part in rest]), first.names)
    for step, live in zip(plan.steps, plan.live, strict=True):
        bindings = build_step(step, live, bindings, plan, context)
    return head_rows(bindings, plan, context)


def loops_of(plan: RulePlan, context: RuleContext) -> frozenset[nodes.Loop]:
    """Return the loops that any atom of a rule depends on: all steps take place inside them."""
    sources = [pipeline.source for pipeline in plan.pipelines]
    sources += [lookup.source for pipeline in plan.pipelines for lookup in lookups_of(pipeline)]
    return frozenset(loop for source in sources for loop in context.read(source.atom.relation).node.loops)


def lookups_of(pipeline: DeltaPipeline) -> list[SourceLookup]:
    """Return all lookups of a pipeline."""
    return [lookup for step in pipeline.steps if isinstance(step, ExtendStep) for lookup in step.lookups]


def build_pipeline(
    plan: RulePlan, pipeline: DeltaPipeline, context: RuleContext, loops: frozenset[nodes.Loop]
) -> Bindings:
    """Return the solutions that the changes of one atom add."""
    bindings = changes_of(pipeline, context, loops)
    rounds = frozenset(name.removeprefix("$") for name in rounds_of(loops))
    gates = lookups_of(pipeline)
    for step, live in zip(pipeline.steps, pipeline.live, strict=True):
        match step:
            case ExtendStep():
                gates = [lookup for lookup in gates if lookup not in step.lookups]
                bindings = extend(bindings, step, live | rounds, gates, context)
                gates = []  # the first step checks for all later lookups; once is enough
            case EqualNamesStep():
                rows = bindings.rows.filter(col(bindings.names[step.first]) == col(bindings.names[step.second]))
                bindings = Bindings(rows, bindings.names)
            case _:
                bindings = build_step(step, live | rounds, bindings, plan, context)
    return bindings


def rows_of(source: PipelineSource, context: RuleContext) -> Collection:
    """Return the relation that a source is looked up in; for a negation with wildcards only the named columns."""
    columns = [column.name for column in context.relations[source.atom.relation].columns]
    named = tuple(name for name, term in zip(columns, source.names, strict=True) if term is not None)
    if len(named) < len(columns):
        return context.keys_of(source.atom.relation, tuple(sorted(named)))
    return context.read(source.atom.relation)


def changes_of(pipeline: DeltaPipeline, context: RuleContext, loops: frozenset[nodes.Loop]) -> Bindings:
    """Return the changes of an atom as tuples that carry their initial time."""
    source = pipeline.source
    rows = rows_of(source, context)
    columns = [column.name for column in context.relations[source.atom.relation].columns]
    names: dict[str, str] = {}
    for column, term in zip(columns, source.names, strict=True):
        if isinstance(term, ConstantTerm):
            rows = rows.filter(col(column) == lit(term.value))
        elif term is not None:
            names[term] = column
    kept = {f"${name}": col(names[name]) for name in names if name in pipeline.head}
    rows = rows.select(**(kept or {UNIT: lit(0)}))
    rows = rows.negate() if source.negative else rows
    rounds = rounds_of(loops)
    schema = Schema.of({**dict(zip(rows.schema.names, rows.schema.types, strict=True)), **rounds})
    changes = type(rows)(rows.db, nodes.DeltaSourceNode(schema, loops, rows.node))
    return Bindings(changes, {name.removeprefix("$"): name for name in schema.names if name != UNIT})


def extend(
    bindings: Bindings, step: ExtendStep, live: frozenset[str], gates: list[SourceLookup], context: RuleContext
) -> Bindings:
    """Extend the tuples by one step; keep the variables that are still read."""
    first = step.lookups[0].source
    columns = [column.name for column in context.relations[first.atom.relation].columns]
    new = {name: columns[first.names.index(name)] for name in step.new}
    extenders = tuple(extender_of(lookup, bindings, step, context) for lookup in step.lookups)
    ours = [name for name in bindings.names if name in live and not name.startswith("@")]
    rounds = [name for name in bindings.names if name.startswith("@")]
    theirs = [name for name in new if name in live]
    if not ours and not theirs:
        ours = [name for name in bindings.names if not name.startswith("@")][:1]
        theirs = [] if ours else list(new)[:1]
    types = {bindings.names[name]: bindings.rows.schema.type_of(bindings.names[name]) for name in (*ours, *rounds)}
    row = rows_of(first, context).schema
    outputs = {bindings.names[name]: (0, bindings.names[name]) for name in ours}
    outputs |= {f"${name}": (1, new[name]) for name in theirs}
    outputs |= {bindings.names[name]: (0, bindings.names[name]) for name in rounds}
    schema = Schema.of({name: types[of] if side == 0 else row.type_of(of) for name, (side, of) in outputs.items()})
    node = nodes.ExtendNode(
        schema,
        bindings.rows.node.loops,
        bindings.rows.node,
        extenders,
        tuple(extender_of(lookup, bindings, None, context) for lookup in gates if not lookup.source.negative),
        tuple(outputs.values()),
        None if step.low is None else bindings.names[step.low],
        None if step.high is None else bindings.names[step.high],
    )
    names = {name.removeprefix("$"): name for name in schema.names if name != UNIT}
    return Bindings(type(bindings.rows)(bindings.rows.db, node), names)


def extender_of(
    lookup: SourceLookup, bindings: Bindings, step: ExtendStep | None, context: RuleContext
) -> nodes.ExtenderSpec:
    """Translate a lookup from variables to columns."""
    declared = context.relations[lookup.source.atom.relation].columns
    key: list[tuple[Any, str]] = []
    for value, column in lookup.key:
        if isinstance(value, ConstantTerm):
            number: Any = float(value.value) if declared[column].kind == "float" else value.value
            key.append((lit(number), declared[column].name))
        else:
            key.append((bindings.names.get(value, f"${value}"), declared[column].name))
    is_functional = step is not None and len(step.new) == 1 and step.new[0] in lookup.source.functional
    rows = rows_of(lookup.source, context)
    return nodes.ExtenderSpec(rows.node, tuple(key), lookup.strict, lookup.source.negative, is_functional)

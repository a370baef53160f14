"""A rule's pipelines as a collection: the sum of what the changes of each atom lead to.

    rows of the head  =  Σ over atoms i  of  changes of atom i, extended by the atoms j: at times before, where j > i,
                                             and at the same time as well, where j < i

so that of several changes at one time exactly one, that of the last atom, finds all others. Indexes are those of the
relations themselves. A negated atom stands for one minus its relation: its changes count the other way round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kpg.columns.functions import col, lit
from kpg.columns.schema import Schema
from kpg.plan import nodes
from kpg.plan.delta_queries import rounds_of
from kpg.query.binary_joins import BindStep, FilterStep, GenerateStep
from kpg.query.delta_pipelines import DeltaPipeline, EqualNamesStep, ExtendStep, PipelineSource, SourceLookup
from kpg.query.ir.terms import ConstantTerm
from kpg.query.join_strategy import RulePlan
from kpg.query.lower.lower_rule import UNIT, Bindings, Surroundings, chosen, generate, head_rows, terms_of

if TYPE_CHECKING:
    from kpg.api.collection import Collection


def build_pipelines(plan: RulePlan, around: Surroundings) -> Collection:
    """The rows of a rule's head, under the names of its relation's columns."""
    loops = loops_of(plan, around)
    parts = [head_rows(build_pipeline(plan, pipeline, around, loops), plan, around) for pipeline in plan.pipelines]
    return parts[0].concat(*parts[1:])


def loops_of(plan: RulePlan, around: Surroundings) -> frozenset[nodes.Loop]:
    """The loops that any atom of a rule depends on: all steps happen there."""
    looked = [pipeline.source for pipeline in plan.pipelines]
    looked += [look.source for pipeline in plan.pipelines for look in looks_of(pipeline)]
    return frozenset(loop for source in looked for loop in around.read(source.atom.relation).node.loops)


def looks_of(pipeline: DeltaPipeline) -> list[SourceLookup]:
    """All that a pipeline looks up."""
    return [look for step in pipeline.steps if isinstance(step, ExtendStep) for look in step.looks]


def build_pipeline(
    plan: RulePlan, pipeline: DeltaPipeline, around: Surroundings, loops: frozenset[nodes.Loop]
) -> Bindings:
    """The solutions that the changes of one atom lead to."""
    found = changes_of(pipeline, around, loops)
    rounds = frozenset(name.removeprefix("$") for name in rounds_of(loops))
    gates = looks_of(pipeline)
    for step, live in zip(pipeline.steps, pipeline.live, strict=True):
        match step:
            case ExtendStep():
                gates = [look for look in gates if look not in step.looks]
                found = extend(found, step, live | rounds, gates, around)
                gates = []  # one gate at the entrance is enough
            case EqualNamesStep():
                rows = found.rows.filter(col(found.names[step.first]) == col(found.names[step.second]))
                found = Bindings(rows, found.names)
            case FilterStep():
                rows = found.rows.filter(terms_of(found, plan).condition(step.condition))
                found = Bindings(rows, found.names)
            case BindStep():
                value = terms_of(found, plan).expression(step.term)
                found = chosen(found, (live | rounds) - {step.variable}, {step.variable: value})
            case GenerateStep():
                found = generate(found, step, live | rounds, plan)
    return found


def rows_of(source: PipelineSource, around: Surroundings) -> Collection:
    """The relation that is looked up for an atom: for a negation only the columns that are known."""
    columns = [column.name for column in around.relations[source.atom.relation].columns]
    known = tuple(name for name, term in zip(columns, source.names, strict=True) if term is not None)
    if len(known) < len(columns):
        return around.keys_of(source.atom.relation, tuple(sorted(known)))
    return around.read(source.atom.relation)


def changes_of(pipeline: DeltaPipeline, around: Surroundings, loops: frozenset[nodes.Loop]) -> Bindings:
    """The changes of an atom, as tuples that know their initial time."""
    source = pipeline.source
    rows = rows_of(source, around)
    columns = [column.name for column in around.relations[source.atom.relation].columns]
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
    made = type(rows)(rows.db, nodes.DeltaSourceNode(schema, loops, rows.node))
    return Bindings(made, {name.removeprefix("$"): name for name in schema.names if name != UNIT})


def extend(
    found: Bindings, step: ExtendStep, live: frozenset[str], gates: list[SourceLookup], around: Surroundings
) -> Bindings:
    """The tuples extended by a step, with what is still read."""
    first = step.looks[0].source
    columns = [column.name for column in around.relations[first.atom.relation].columns]
    new = {name: columns[first.names.index(name)] for name in step.new}
    extenders = tuple(extender_of(look, found, step, around) for look in step.looks)
    ours = [name for name in found.names if name in live and not name.startswith("@")]
    rounds = [name for name in found.names if name.startswith("@")]
    theirs = [name for name in new if name in live]
    if not ours and not theirs:
        ours = [name for name in found.names if not name.startswith("@")][:1]
        theirs = [] if ours else list(new)[:1]
    types = {found.names[name]: found.rows.schema.type_of(found.names[name]) for name in (*ours, *rounds)}
    row = rows_of(first, around).schema
    made = {found.names[name]: (0, found.names[name]) for name in ours}
    made |= {f"${name}": (1, new[name]) for name in theirs}
    made |= {found.names[name]: (0, found.names[name]) for name in rounds}
    schema = Schema.of({name: types[of] if side == 0 else row.type_of(of) for name, (side, of) in made.items()})
    node = nodes.ExtendNode(
        schema,
        found.rows.node.loops,
        found.rows.node,
        extenders,
        tuple(extender_of(look, found, None, around) for look in gates if not look.source.negative),
        tuple(made.values()),
        None if step.low is None else found.names[step.low],
        None if step.high is None else found.names[step.high],
    )
    names = {name.removeprefix("$"): name for name in schema.names if name != UNIT}
    return Bindings(type(found.rows)(found.rows.db, node), names)


def extender_of(
    look: SourceLookup, found: Bindings, step: ExtendStep | None, around: Surroundings
) -> nodes.ExtenderSpec:
    """A look-up in terms of columns."""
    declared = around.relations[look.source.atom.relation].columns
    key: list[tuple[Any, str]] = []
    for value, place in look.key:
        if isinstance(value, ConstantTerm):
            number: Any = float(value.value) if declared[place].kind == "float" else value.value
            key.append((lit(number), declared[place].name))
        else:
            key.append((found.names.get(value, f"${value}"), declared[place].name))
    single = step is not None and len(step.new) == 1 and step.new[0] in look.source.single
    rows = rows_of(look.source, around)
    return nodes.ExtenderSpec(rows.node, tuple(key), look.strict, look.source.negative, single)

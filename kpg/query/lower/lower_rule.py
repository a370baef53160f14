"""Lower a rule's plan of binary joins to a collection: one row of the head for each solution of the body.

Atoms are read directly, filtered by their constants. Joins therefore use indexes of the relations themselves, and all
rules that read a relation by the same columns share one index. The output of a join has columns named after variables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kpg.columns.expression import Written
from kpg.columns.functions import col, lit
from kpg.plan import nodes
from kpg.query.binary_joins import (
    AntiJoinStep,
    BindStep,
    FilterStep,
    GenerateStep,
    JoinStep,
    ScanStep,
    TogetherStep,
    fixed_columns,
    repeated_columns,
)
from kpg.query.ir.literals import Atom
from kpg.query.ir.program import Relation
from kpg.query.ir.show import show_term
from kpg.query.ir.terms import VariableTerm
from kpg.query.join_strategy import RulePlan
from kpg.query.lower.expressions import TermCompiler
from kpg.query.lower.ranges import over_ranges
from kpg.query.lower.unit_input import UNIT
from kpg.query.lower.value_expressions import column_type, constant, within_range

if TYPE_CHECKING:
    from kpg.api.collection import Collection


@dataclass(frozen=True, slots=True)
class Bindings:
    """Rows, and the column of each variable."""

    rows: Collection
    names: dict[str, str]


@dataclass(frozen=True, slots=True)
class RuleContext:
    """The collections and declarations that a rule is lowered with, and a collection of one row."""

    read: Callable[[str], Collection]
    keys_of: Callable[[str, tuple[str, ...]], Collection]  # the distinct values of some columns
    relations: dict[str, Relation]
    unit: Callable[[], Collection]


def build_rule(plan: RulePlan, context: RuleContext) -> Collection:
    """Return the rows of a rule's head, under the column names of its relation."""
    bindings: Bindings | None = None
    for step, live in zip(plan.steps, plan.live, strict=True):
        bindings = build_step(step, live, bindings, plan, context)
    if bindings is None:
        bindings = Bindings(context.unit(), {})
    return head_rows(bindings, plan, context)


def head_rows(bindings: Bindings, plan: RulePlan, context: RuleContext) -> Collection:
    """Return one row of the head for each solution of the body; a rule for errors derives none."""
    head = context.relations[plan.rule.head.relation]
    if plan.rule.role == "errors":
        return no_rows(bindings.rows, head)
    compiler = term_compiler(bindings, plan, show_all=True)
    columns = zip(head.columns, plan.rule.head.arguments, strict=True)
    values = {column.name: compiler.expression(term) for column, term in columns}
    for column, term in zip(head.columns, plan.rule.head.arguments, strict=True):
        if column.range is not None:
            origin = compiler.origin_at(plan.rule.head.at, show_term(term), term)
            values[column.name] = Written(within_range(values[column.name], column.range, column.type), origin)
    rows = bindings.rows.select(**(values or {UNIT: lit(0)}))
    return silent(rows) if plan.rule.role == "silent" else rows


def no_rows(rows: Collection, relation: Relation) -> Collection:
    """Return no rows of a relation; only the errors of `rows` remain."""
    values = {column.name: lit(None).cast(column_type(column.kind)).not_null() for column in relation.columns}
    return silent(rows.filter(lit(False)).select(**(values or {UNIT: lit(0)})))


def silent(rows: Collection) -> Collection:
    """Return a selection or filter that drops rows that fail without an error."""
    assert isinstance(rows.node, (nodes.SelectNode, nodes.FilterNode, nodes.FlatMapNode))
    return type(rows)(rows.db, replace(rows.node, silent=True))


def build_step(
    step: object, live: frozenset[str], bindings: Bindings | None, plan: RulePlan, context: RuleContext
) -> Bindings:
    """Return the bindings after one more step; `live` are the variables that later steps read."""
    if isinstance(step, ScanStep):
        return scan(step.atom, context)
    bindings = bindings or Bindings(context.unit(), {})
    match step:
        case JoinStep():
            return join(bindings, step, live, context)
        case AntiJoinStep():
            return anti_join(bindings, step, context)
        case FilterStep():
            kept = bindings.rows.filter(term_compiler(bindings, plan, not step.silent).condition(step.condition))
            return Bindings(silent(kept) if step.silent else kept, bindings.names)
        case TogetherStep():
            whole = term_compiler(bindings, plan, show_all=True).together(step.conditions, step.terms)
            return Bindings(bindings.rows.filter(whole), bindings.names)
        case BindStep():
            value = term_compiler(bindings, plan, not step.silent).expression(step.term)
            computed = project(bindings, live - {step.variable}, {step.variable: value})
            return Bindings(silent(computed.rows), computed.names) if step.silent else computed
        case GenerateStep():
            return generate(bindings, step, live, plan)
    raise AssertionError(step)


def term_compiler(bindings: Bindings, plan: RulePlan, show_all: bool = False) -> TermCompiler:
    """Return a compiler for terms of the rule over the columns of the bindings."""
    db, rule = bindings.rows.db, f"{plan.rule.at} {plan.rule.head.relation}"
    kinds = dict(plan.rule.kinds)
    return TermCompiler(bindings.names, kinds, db.functors, db.is_single_worker, rule, show_all)


def scan(atom: Atom, context: RuleContext) -> Bindings:
    """Return the rows of an atom, in the columns of its relation."""
    columns = [column.name for column in context.relations[atom.relation].columns]
    rows = context.read(atom.relation)
    for column, term in fixed_columns(atom):
        rows = rows.filter(col(columns[column]) == constant(term))
    for first, second in repeated_columns(atom):
        rows = rows.filter(col(columns[first]) == col(columns[second]))
    names: dict[str, str] = {}
    for column, argument in enumerate(atom.arguments):
        if isinstance(argument, VariableTerm):
            names.setdefault(argument.name, columns[column])
    return Bindings(rows, names)


def join(bindings: Bindings, step: JoinStep, live: frozenset[str], context: RuleContext) -> Bindings:
    """Join the bindings with the rows of an atom; keep the variables that are still read."""
    right = scan(step.atom, context)
    on = [(bindings.names[name], right.names[name]) for name, _ in step.on]
    if len({left for left, _ in on}) < len(on) or has_name_clash(bindings, right):
        bindings = project(bindings, frozenset(bindings.names), {})
        on = [(bindings.names[name], right.names[name]) for name, _ in step.on]
    joined = bindings.rows.join(right.rows, on=dict(on))
    names = dict(bindings.names)
    merged = {theirs for ours, theirs in on if ours == theirs}
    for name, column in right.names.items():
        if name not in names:
            names[name] = column if column in merged or column not in bindings.rows.schema.names else f"{column}_right"
    return project(Bindings(joined, names), live, {})


def has_name_clash(bindings: Bindings, right: Bindings) -> bool:
    """Return whether the columns of a join would not have unique names."""
    ours, theirs = set(bindings.rows.schema.names), set(right.rows.schema.names)
    return any(f"{name}_right" in ours | theirs for name in ours & theirs)


def project(bindings: Bindings, live: frozenset[str], computed: dict[str, object]) -> Bindings:
    """Keep only the variables that are read, in columns named after them, and add computed ones."""
    names = {name: f"${name}" for name in (*sorted(live & bindings.names.keys()), *computed)}
    values = {names[name]: col(bindings.names[name]) for name in names if name not in computed}
    values |= {names[name]: value for name, value in computed.items()}  # type: ignore[misc]
    return Bindings(bindings.rows.select(**(values or {UNIT: lit(0)})), names)


def anti_join(bindings: Bindings, step: AntiJoinStep, context: RuleContext) -> Bindings:
    """Drop the bindings that match a row of an atom."""
    right = scan(step.atom, context)
    on = {bindings.names[name]: right.names[name] for name, _ in step.on}
    theirs = tuple(on.values())
    plain = not fixed_columns(step.atom) and not repeated_columns(step.atom)
    if plain and set(theirs) == set(right.rows.schema.names):
        keys = right.rows  # a set already
    elif plain and theirs:
        keys = context.keys_of(step.atom.relation, tuple(sorted(theirs)))
    else:
        keys = right.rows.select(**{name: col(name) for name in theirs} or {UNIT: lit(0)}).distinct()
    if has_name_clash(bindings, Bindings(keys, {})):
        bindings = project(bindings, frozenset(bindings.names), {})
        on = {bindings.names[name]: right.names[name] for name, _ in step.on}
    hits = bindings.rows.join(keys, on=on)
    return Bindings(bindings.rows.subtract(hits.select(*bindings.rows.schema.names)), bindings.names)


def generate(bindings: Bindings, step: GenerateStep, live: frozenset[str], plan: RulePlan) -> Bindings:
    """Return the bindings with each value of a range."""
    compiler = term_compiler(bindings, plan)
    bounds = {f"bound {number}": compiler.expression(term) for number, term in enumerate(step.call.arguments)}
    kept = project(bindings, live - {step.variable}, {}).names
    values = {column: col(bindings.names[name]) for name, column in kept.items()}
    table = bindings.rows.select(**values, **bounds)
    table = silent(table) if step.silent else table
    types = {column: table.schema.type_of(column) for column in kept.values()}
    function = over_ranges(tuple(kept.values()), tuple(bounds), f"${step.variable}")
    rows = table.flat_map(function, **types, **{f"${step.variable}": column_type(step.kind)})
    shown = {VariableTerm(name).written: column for name, column in kept.items() if not name.startswith("@")}
    origin = replace(compiler.origin(step.call), columns=tuple(shown.items()))
    assert isinstance(rows.node, nodes.FlatMapNode)
    rows = type(rows)(rows.db, replace(rows.node, origin=origin, silent=step.silent))
    return Bindings(rows, {**kept, step.variable: f"${step.variable}"})

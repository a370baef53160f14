"""A rule's plan as a collection: the rows of its head, as often as its body has solutions.

Atoms are read as they are, filtered by their constants, so that joins use the index of the relation itself and every
rule that reads it by the same columns shares one. What comes out of a join is in columns named after variables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kpg.columns.functions import col, lit
from kpg.query.binary_joins import (
    AntiJoinStep,
    BindStep,
    FilterStep,
    GenerateStep,
    JoinStep,
    ScanStep,
    fixed_columns,
    repeated_columns,
)
from kpg.query.ir.literals import Atom
from kpg.query.ir.program import Relation
from kpg.query.ir.terms import VariableTerm
from kpg.query.join_strategy import RulePlan
from kpg.query.lower.expressions import TYPES, Terms
from kpg.query.lower.ranges import over_ranges

if TYPE_CHECKING:
    from kpg.api.collection import Collection

UNIT = " unit"  # the column of what has no columns


@dataclass(frozen=True, slots=True)
class Bindings:
    """Rows, and in which column of them each variable is."""

    rows: Collection
    names: dict[str, str]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a rule is built from: relations by name as rows, their declarations, and the row that is always there."""

    read: Callable[[str], Collection]
    keys_of: Callable[[str, tuple[str, ...]], Collection]  # each combination of some columns, once
    relations: dict[str, Relation]
    unit: Callable[[], Collection]


def build_rule(plan: RulePlan, around: Surroundings) -> Collection:
    """The rows of a rule's head, under the names of its relation's columns."""
    found: Bindings | None = None
    for step, live in zip(plan.steps, plan.live, strict=True):
        found = build_step(step, live, found, plan, around)
    if found is None:
        found = Bindings(around.unit(), {})
    return head_rows(found, plan, around)


def head_rows(found: Bindings, plan: RulePlan, around: Surroundings) -> Collection:
    """The head of a rule for each solution of its body."""
    head = around.relations[plan.rule.head.relation]
    terms = terms_of(found, plan)
    columns = zip(head.columns, plan.rule.head.arguments, strict=True)
    made = {column.name: terms.expression(term) for column, term in columns}
    return found.rows.select(**(made or {UNIT: lit(0)}))


def build_step(
    step: object, live: frozenset[str], found: Bindings | None, plan: RulePlan, around: Surroundings
) -> Bindings:
    """The rows after one more step."""
    if isinstance(step, ScanStep):
        return scan(step.atom, around)
    found = found or Bindings(around.unit(), {})
    match step:
        case JoinStep():
            return join(found, step, live, around)
        case AntiJoinStep():
            return without(found, step, around)
        case FilterStep():
            return Bindings(found.rows.filter(terms_of(found, plan).condition(step.condition)), found.names)
        case BindStep():
            value = terms_of(found, plan).expression(step.term)
            return chosen(found, live - {step.variable}, {step.variable: value})
        case GenerateStep():
            return generate(found, step, live, plan)
    raise AssertionError(step)


def terms_of(found: Bindings, plan: RulePlan) -> Terms:
    """The variables of a rule, in the columns they are in now."""
    return Terms(found.names, found.rows.db.symbols, dict(plan.rule.kinds))


def scan(atom: Atom, around: Surroundings) -> Bindings:
    """The rows of an atom, in the columns of its relation."""
    columns = [column.name for column in around.relations[atom.relation].columns]
    rows = around.read(atom.relation)
    for place, constant in fixed_columns(atom):
        rows = rows.filter(col(columns[place]) == lit(constant.value))
    for first, second in repeated_columns(atom):
        rows = rows.filter(col(columns[first]) == col(columns[second]))
    names: dict[str, str] = {}
    for place, term in enumerate(atom.arguments):
        if isinstance(term, VariableTerm):
            names.setdefault(term.name, columns[place])
    return Bindings(rows, names)


def join(found: Bindings, step: JoinStep, live: frozenset[str], around: Surroundings) -> Bindings:
    """The rows that meet those of an atom, with the variables that are still read."""
    right = scan(step.atom, around)
    on = [(found.names[name], right.names[name]) for name, _ in step.on]
    if len({left for left, _ in on}) < len(on) or clash(found, right):
        found = chosen(found, frozenset(found.names), {})
        on = [(found.names[name], right.names[name]) for name, _ in step.on]
    joined = found.rows.join(right.rows, on=dict(on))
    names = dict(found.names)
    merged = {theirs for ours, theirs in on if ours == theirs}
    for name, column in right.names.items():
        if name not in names:
            names[name] = column if column in merged or column not in found.rows.schema.names else f"{column}_right"
    return chosen(Bindings(joined, names), live, {})


def clash(found: Bindings, right: Bindings) -> bool:
    """Whether the names of a join's columns would not be unique."""
    ours, theirs = set(found.rows.schema.names), set(right.rows.schema.names)
    return any(f"{name}_right" in ours | theirs for name in ours & theirs)


def chosen(found: Bindings, live: frozenset[str], computed: dict[str, object]) -> Bindings:
    """Only the variables that are read, in columns named after them, and computed ones."""
    names = {name: f"${name}" for name in (*sorted(live & found.names.keys()), *computed)}
    values = {names[name]: col(found.names[name]) for name in names if name not in computed}
    values |= {names[name]: value for name, value in computed.items()}  # type: ignore[misc]
    return Bindings(found.rows.select(**(values or {UNIT: lit(0)})), names)


def without(found: Bindings, step: AntiJoinStep, around: Surroundings) -> Bindings:
    """The rows that meet no row of an atom."""
    right = scan(step.atom, around)
    on = {found.names[name]: right.names[name] for name, _ in step.on}
    theirs = tuple(on.values())
    plain = not fixed_columns(step.atom) and not repeated_columns(step.atom)
    if plain and set(theirs) == set(right.rows.schema.names):
        keys = right.rows  # a set already
    elif plain and theirs:
        keys = around.keys_of(step.atom.relation, tuple(sorted(theirs)))
    else:
        keys = right.rows.select(**{name: col(name) for name in theirs} or {UNIT: lit(0)}).distinct()
    if clash(found, Bindings(keys, {})):
        found = chosen(found, frozenset(found.names), {})
        on = {found.names[name]: right.names[name] for name, _ in step.on}
    hits = found.rows.join(keys, on=on)
    return Bindings(found.rows.subtract(hits.select(*found.rows.schema.names)), found.names)


def generate(found: Bindings, step: GenerateStep, live: frozenset[str], plan: RulePlan) -> Bindings:
    """The rows with each value of a range."""
    terms = terms_of(found, plan)
    bounds = {f"bound {place}": terms.expression(term) for place, term in enumerate(step.call.arguments)}
    wide = chosen(found, live - {step.variable}, {})
    kept = wide.names
    values = {column: col(found.names[name]) for name, column in kept.items()}
    table = found.rows.select(**values, **bounds)
    types = {column: table.schema.type_of(column) for column in kept.values()}
    made = over_ranges(tuple(kept.values()), tuple(bounds), f"${step.variable}")
    rows = table.flat_map(made, **types, **{f"${step.variable}": TYPES[step.kind]})
    return Bindings(rows, {**kept, step.variable: f"${step.variable}"})

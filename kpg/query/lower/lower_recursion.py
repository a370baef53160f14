"""Which recursions are one operator instead of a loop, and how: rules on lanes.

    saturable(program, stratum)      None if rows need never be taken back; else why not
    keepable(program, stratum)       None if levels keep it right while rows come and go; else why not
    system_of(program, stratum, ...) the rules as a `kpg.seminaive` system

Of an insert-only program, a recursion is saturated if nothing it reads, directly or not, can shrink when inputs grow:
no negation, no aggregate. Its recursive rules must be joins and comparisons of at most three columns a relation; its
other rules may be anything. Where rows may go, each recursive rule must read one row of the recursion, of at most two
columns, and neither negate nor compute. What is neither runs as a loop, insert-only or not.

An operator of its own reads all of its inputs once, where a loop looks up what it needs in indexes that are shared. So
a recursion from few rows through a large relation is a loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from kpg.columns.scalar_values import encode_value
from kpg.columns.schema import Schema
from kpg.query.ir.body_variables import literals
from kpg.query.ir.literals import Atom, Comparison, Literal, atoms, variables
from kpg.query.ir.program import Program, Rule, Stratum
from kpg.query.ir.rewrites.stratify import dependencies
from kpg.query.ir.terms import ConstantTerm, Kind, Term, VariableTerm, WildcardTerm
from kpg.query.lower.expressions import TYPES
from kpg.seminaive import recursion_rules as insert_only

if TYPE_CHECKING:
    from kpg.columns.symbols import Symbols

MOST_COLUMNS = 3  # whose values, as many as there are, must fit into 62 bits
LARGE = 1_000_000  # rows that are not read just to follow some of them
KEPT_COLUMNS = 2  # of as many values as there may be
ORDERED: tuple[Kind, ...] = ("number", "unsigned", "float")  # kinds whose lanes are in the order of their values


def saturable(program: Program, stratum: Stratum) -> str | None:
    """Why a recursion cannot be saturated; None if it can."""
    relations = program.by_name()
    if any(relations[name].made or relations[name].bag for name in stratum.relations):
        return "it aggregates inside its recursion, or counts rows"
    lost = shrinking(program, stratum.relations)
    if lost is not None:
        return f"{lost} may lose rows when others grow"
    for rule in recursive_rules(program, stratum):
        for name in (rule.head.relation, *(atom.relation for atom, _ in atoms(rule.body))):
            if not 1 <= relations[name].arity <= MOST_COLUMNS:
                return f"{name} has {relations[name].arity} columns"
        if not all(is_plain(literal, rule) for literal in literals(rule)):
            return f"a recursive rule computes values ({rule.at})"
        if not all(isinstance(term, (VariableTerm, ConstantTerm)) for term in rule.head.arguments):
            return f"a recursive rule computes values ({rule.at})"
    return None


def keepable(program: Program, stratum: Stratum) -> str | None:
    """Why a recursion cannot be kept by levels; None if it can."""
    relations = program.by_name()
    if any(relations[name].made or relations[name].bag for name in stratum.relations):
        return "it aggregates inside its recursion, or counts rows"
    for rule in recursive_rules(program, stratum):
        for name in (rule.head.relation, *(atom.relation for atom, _ in atoms(rule.body))):
            if not 1 <= relations[name].arity <= KEPT_COLUMNS:
                return f"{name} has {relations[name].arity} columns"
        if sum(atom.relation in stratum.relations for atom, _ in atoms(rule.body)) > 1:
            return f"a rule recurs twice ({rule.at})"
        if not all(is_plain(literal, rule) for literal in literals(rule)):
            return f"a recursive rule computes or negates ({rule.at})"
        if not all(isinstance(term, (VariableTerm, ConstantTerm)) for term in rule.head.arguments):
            return f"a recursive rule computes values ({rule.at})"
        if not tells_its_source(rule, stratum):
            return f"a rule does not tell which row of the recursion it follows from ({rule.at})"
    return None


def tells_its_source(rule: Rule, stratum: Stratum) -> bool:
    """Whether the head and the other atoms of a rule say which row of the recursion it follows from."""
    own = next(atom for atom, _ in atoms(rule.body) if atom.relation in stratum.relations)
    if any(isinstance(term, WildcardTerm) for term in own.arguments):
        return False
    others = (rule.head, *(atom for atom, _ in atoms(rule.body) if atom is not own))
    known = {each.name for atom in others for each in variables(atom)}
    names = [each.name for each in variables(own)]
    return len(set(names)) == len(names) and set(names) <= known


def is_seeded(program: Program, stratum: Stratum) -> bool:
    """Whether a recursion starts from other rows than its recursive rules read, so that it may need few of these."""
    read = {atom.relation for rule in recursive_rules(program, stratum) for atom, _ in atoms(rule.body)}
    rules = [rule for name in stratum.relations for rule in program.rules_of(name) if not is_recursive(rule, stratum)]
    return not any(atom.relation in read for rule in rules for atom, _ in atoms(rule.body))


def shrinking(program: Program, names: tuple[str, ...]) -> str | None:
    """A relation among some and what they read that may lose rows although inputs grow."""
    edges = dependencies(program)
    queue = list(names)
    for name in queue:
        for edge in edges:
            if edge.reader == name:
                if edge.how:
                    return name
                if edge.read not in queue:
                    queue.append(edge.read)
    return None


def recursive_rules(program: Program, stratum: Stratum) -> list[Rule]:
    """The rules of a recursion that read one of its relations."""
    rules = [rule for name in stratum.relations for rule in program.rules_of(name)]
    return [rule for rule in rules if is_recursive(rule, stratum)]


def is_recursive(rule: Rule, stratum: Stratum) -> bool:
    """Whether a rule reads a relation of its recursion."""
    return any(atom.relation in stratum.relations for atom, _ in atoms(rule.body))


def is_plain(literal: Literal, rule: Rule) -> bool:
    """Whether a literal is an atom, or a comparison that lanes decide."""
    if isinstance(literal, Atom):
        return True
    if not isinstance(literal, Comparison):
        return False
    terms = (literal.left, literal.right)
    if not all(isinstance(term, (VariableTerm, ConstantTerm)) for term in terms):
        return False
    return literal.op in ("=", "!=") or all(kind_of(term, rule) in ORDERED for term in terms)


def kind_of(term: Term, rule: Rule) -> Kind:
    """What a variable or constant holds."""
    if isinstance(term, VariableTerm):
        return rule.kind_of(term.name)
    assert isinstance(term, ConstantTerm)
    return term.kind or "number"


def system_of(
    program: Program, stratum: Stratum, read: list[str], symbols: Symbols, name: str, max_rounds: int
) -> insert_only.RuleSystem:
    """The recursive rules on lanes; relations are those of the recursion, then those they read."""
    relations = program.by_name()
    order = [*stratum.relations, *read]
    numbers = {each: number for number, each in enumerate(order)}
    made: list[insert_only.RecursionRule] = []
    texts: list[int] = []
    for rule in recursive_rules(program, stratum):
        lane = lanes_of(symbols, texts)
        body: list[insert_only.Literal] = []
        for literal in literals(rule):
            if isinstance(literal, Atom):
                body.append(atom_of(literal, program, numbers, lane))
            else:
                assert isinstance(literal, Comparison)
                kind = kind_of(literal.left, rule)
                body.append(
                    insert_only.RecursionComparison(literal.op, lane(literal.left, kind), lane(literal.right, kind))
                )
        made.append(insert_only.rule(atom_of(rule.head, program, numbers, lane), tuple(body)))
    arities = tuple(relations[each].arity for each in order)
    held = symbols.hold(np.array(texts, np.int64))
    return insert_only.RuleSystem(name, arities, len(stratum.relations), tuple(made), max_rounds, held=held)


Lane = Callable[[Term, Kind], insert_only.Term]


def lanes_of(symbols: Symbols, texts: list[int]) -> Lane:
    """How the terms of a rule become variables and lane values; those that are symbols are added to texts."""

    def lane(term: Term, kind: Kind) -> insert_only.Term:
        if isinstance(term, VariableTerm):
            return term.name
        assert isinstance(term, ConstantTerm)
        type_ = Schema.of({"value": TYPES[kind]}).types[0]
        value = encode_value(type_, term.value, symbols)
        if type_.is_symbolic:
            texts.append(value)
        return value

    return lane


def atom_of(atom: Atom, program: Program, numbers: dict[str, int], lane: Lane) -> insert_only.RecursionAtom:
    """An atom on lanes."""
    columns = program.by_name()[atom.relation].columns
    terms = [
        None if isinstance(term, WildcardTerm) else lane(term, column.kind)
        for term, column in zip(atom.arguments, columns, strict=True)
    ]
    return insert_only.RecursionAtom(numbers[atom.relation], tuple(terms))

"""Lower recursions to one operator instead of a loop, where the rules allow it.

    saturation_obstacle(program, stratum)    None if the recursion needs no support for removals; else why it does
    maintenance_obstacle(program, stratum)   None if the operator can maintain it under removals; else why not
    system_of(program, stratum, ...)         the rules as a system of `kpg.seminaive`

In an insert-only program, a recursion is saturated if no relation it reads, directly or not, can lose rows when inputs
grow: no negation, no aggregate. Its recursive rules must be joins and comparisons; its other rules may be anything. If
rows may be removed, recursive rules may also negate relations of other strata. The operator then keeps the level (the
round) of each row. Recursions that compute values, aggregate, or count rows run as loops. A program that is loaded once
needs no support for removals either: its negated relations are complete before the recursion starts.

The operator reads all its inputs completely, while a loop looks up the rows it needs in shared indexes. A recursion
that starts from few rows and follows a large relation is therefore a loop: see SEEDED_READ_ROWS.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from kpg.columns.scalar_values import encode_value
from kpg.query.ir.body_variables import literals
from kpg.query.ir.literals import Atom, Comparison, Literal, Negation, atoms
from kpg.query.ir.program import Program, Relation, Rule, Stratum
from kpg.query.ir.rewrites.stratify import dependencies
from kpg.query.ir.terms import ConstantTerm, Kind, Term, VariableTerm, WildcardTerm
from kpg.query.lower.value_expressions import column_type
from kpg.seminaive import recursion_rules as seminaive

if TYPE_CHECKING:
    from kpg.columns.symbols import Symbols

SEEDED_READ_ROWS = 1_000_000  # reading more rows than this, to follow few of them, costs more than a loop's lookups
ORDERED: tuple[Kind, ...] = ("number", "unsigned", "float")  # kinds with lanes in the order of their values


def saturation_obstacle(program: Program, stratum: Stratum) -> str | None:
    """Return why a recursion cannot be saturated, or None if it can."""
    relations = program.by_name()
    if any(relations[name].generated or relations[name].bag for name in stratum.relations):
        return "it aggregates inside its recursion, or counts rows"
    if any(relations[name].kind == "choice" for name in stratum.relations):
        return "it chooses rows inside its recursion"
    shrinking = shrinking_relation(program, stratum.relations)
    if shrinking is not None:
        return f"{shrinking} may lose rows when others grow"
    return rule_obstacle(program, stratum)


def maintenance_obstacle(program: Program, stratum: Stratum) -> str | None:
    """Return why one operator cannot maintain a recursion under removals, or None if it can."""
    relations = program.by_name()
    if any(relations[name].generated or relations[name].bag for name in stratum.relations):
        return "it aggregates inside its recursion, or counts rows"
    if any(relations[name].kind == "choice" for name in stratum.relations):
        return "it chooses rows inside its recursion"
    return rule_obstacle(program, stratum)


def rule_obstacle(program: Program, stratum: Stratum) -> str | None:
    """Return why one operator cannot evaluate the rules of a recursion, or None if it can."""
    relations = program.by_name()
    for rule in recursive_rules(program, stratum):
        for name in (rule.head.relation, *(atom.relation for atom, _ in atoms(rule.body))):
            if not relations[name].arity:
                return f"{name} has no columns"
            if (wide := wide_column(relations[name])) is not None:
                return f"{name} has a column of type {wide}"
        if not all(is_join_literal(literal, rule) for literal in literals(rule)):
            return f"a recursive rule computes values ({rule.at})"
        if not all(isinstance(term, (VariableTerm, ConstantTerm)) for term in rule.head.arguments):
            return f"a recursive rule computes values ({rule.at})"
    return None


def wide_column(relation: Relation) -> Kind | None:
    """Return the kind of a column whose values take several lanes, if there is one: the operator reads single lanes."""
    return next((column.kind for column in relation.columns if column_type(column.kind).lanes > 1), None)


def is_seeded(program: Program, stratum: Stratum) -> bool:
    """Return whether a recursion starts from other relations than its recursive rules read; it may need few rows."""
    read = {atom.relation for rule in recursive_rules(program, stratum) for atom, _ in atoms(rule.body)}
    rules = [rule for name in stratum.relations for rule in program.rules_of(name) if not is_recursive(rule, stratum)]
    return not any(atom.relation in read for rule in rules for atom, _ in atoms(rule.body))


def shrinking_relation(program: Program, names: tuple[str, ...]) -> str | None:
    """Return a relation among these, or one they read, that may lose rows when inputs grow; None if there is none."""
    edges = dependencies(program)
    queue = list(names)
    for name in queue:
        for edge in edges:
            if edge.reader == name:
                if edge.blocking:
                    return name
                if edge.read not in queue:
                    queue.append(edge.read)
    return None


def recursive_rules(program: Program, stratum: Stratum) -> list[Rule]:
    """Return the rules of a recursion that read one of its relations."""
    rules = [rule for name in stratum.relations for rule in program.rules_of(name)]
    return [rule for rule in rules if is_recursive(rule, stratum)]


def is_recursive(rule: Rule, stratum: Stratum) -> bool:
    """Return whether a rule reads a relation of its recursion."""
    return any(atom.relation in stratum.relations for atom, _ in atoms(rule.body))


def is_join_literal(literal: Literal, rule: Rule) -> bool:
    """Return whether a literal is an atom, a negated one, or a comparison of variables and constants in lane order."""
    if isinstance(literal, Negation):
        literal = literal.formula  # type: ignore[assignment]
    if isinstance(literal, Atom):
        return all(isinstance(term, (VariableTerm, ConstantTerm, WildcardTerm)) for term in literal.arguments)
    if not isinstance(literal, Comparison):
        return False
    terms = (literal.left, literal.right)
    if not all(isinstance(term, (VariableTerm, ConstantTerm)) for term in terms):
        return False
    return literal.op in ("=", "!=") or all(kind_of(term, rule) in ORDERED for term in terms)


def kind_of(term: Term, rule: Rule) -> Kind:
    """Return the kind of a variable or constant."""
    if isinstance(term, VariableTerm):
        return rule.kind_of(term.name)
    assert isinstance(term, ConstantTerm)
    return term.kind or "number"


class TextRelations:
    """Relations of one text each, which rules read in place of text constants.

    A rule with text constants contains symbols, which each worker numbers differently. A relation of one row is encoded
    by each worker.
    """

    def __init__(self, first: int) -> None:
        self.first = first  # the number of the first of these relations in the system
        self.constants: dict[tuple[Kind, Any], int] = {}

    def atom_of(self, value: Any, kind: Kind) -> seminaive.RecursionAtom:
        """Return the atom that binds a variable to a text."""
        number = self.constants.setdefault((kind, value), len(self.constants))
        return seminaive.RecursionAtom(self.first + number, (f"#text.{number}",))


def system_of(
    program: Program,
    stratum: Stratum,
    read: list[str],
    symbols: Symbols,
    name: str,
    max_rounds: int,
    texts: TextRelations | None = None,
) -> seminaive.RuleSystem:
    """Return the recursive rules over lanes. The relations are those of the recursion, then `read`, then `texts`."""
    relations = program.by_name()
    order = [*stratum.relations, *read]
    numbers = {relation: number for number, relation in enumerate(order)}
    rules: list[seminaive.RecursionRule] = []
    symbol_ids: list[int] = []
    for rule in recursive_rules(program, stratum):
        bound: dict[seminaive.RecursionAtom, None] = {}  # atoms of texts, each once
        lane = lane_terms(symbols, symbol_ids) if texts is None else lane_variables(texts, bound, symbols)
        body: list[seminaive.Literal] = []
        for literal in literals(rule):
            if isinstance(literal, Atom):
                body.append(atom_of(literal, program, numbers, lane))
            elif isinstance(literal, Negation):
                assert isinstance(literal.formula, Atom)
                negated = atom_of(literal.formula, program, numbers, lane)
                body.append(seminaive.RecursionNegation(negated))
            else:
                assert isinstance(literal, Comparison)
                kind = kind_of(literal.left, rule)
                body.append(
                    seminaive.RecursionComparison(literal.op, lane(literal.left, kind), lane(literal.right, kind))
                )
        head = atom_of(rule.head, program, numbers, lane)
        rules.append(seminaive.rule(head, (*body, *bound)))
    arities = tuple(relations[relation].arity for relation in order) + (1,) * (len(texts.constants) if texts else 0)
    held = symbols.hold(np.array(symbol_ids, np.int64))
    return seminaive.RuleSystem(name, arities, len(stratum.relations), tuple(rules), max_rounds, held=held)


LaneTerm = Callable[[Term, Kind], seminaive.Term]


def lane_terms(symbols: Symbols, symbol_ids: list[int]) -> LaneTerm:
    """Return a function from terms to variable names and lane values; it adds constant symbols to `symbol_ids`."""

    def lane(term: Term, kind: Kind) -> seminaive.Term:
        if isinstance(term, VariableTerm):
            return term.name
        assert isinstance(term, ConstantTerm)
        type_ = column_type(kind)
        value = encode_value(type_, term.value, symbols)
        if type_.is_symbolic:
            symbol_ids.append(value)
        return value

    return lane


def lane_variables(texts: TextRelations, bound: dict[seminaive.RecursionAtom, None], symbols: Symbols) -> LaneTerm:
    """Return a function like that of `lane_terms`, but a text is a variable, of which it adds the atom to `bound`."""
    lane_of = lane_terms(symbols, [])

    def lane(term: Term, kind: Kind) -> seminaive.Term:
        if not isinstance(term, ConstantTerm) or not column_type(kind).is_symbolic:
            return lane_of(term, kind)
        atom = texts.atom_of(term.value, kind)
        bound[atom] = None
        variable = atom.terms[0]
        assert isinstance(variable, str)
        return variable

    return lane


def atom_of(atom: Atom, program: Program, numbers: dict[str, int], lane: LaneTerm) -> seminaive.RecursionAtom:
    """Return an atom over lanes."""
    columns = program.by_name()[atom.relation].columns
    terms = [
        None if isinstance(term, WildcardTerm) else lane(term, column.kind)
        for term, column in zip(atom.arguments, columns, strict=True)
    ]
    return seminaive.RecursionAtom(numbers[atom.relation], tuple(terms))

"""Infer the kinds of columns without a declared type: those of rules, from the relations that the rules read.

Attributes have declared kinds. A column of a rule has the kind that the body gives to its variable. Inference repeats
over all rules until it adds no kind. A column without a kind then belongs to a rule that can never hold; its kind is
"number".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kpg.query.ir.functors import FUNCTORS
from kpg.query.ir.literals import Comparison, atoms, subformulas
from kpg.query.ir.program import AggregateReduction, Program, Relation, RelationColumn, Rule
from kpg.query.ir.terms import CallTerm, ConstantTerm, Kind, Term, VariableTerm

ColumnKinds = dict[tuple[str, int], Kind]  # by relation and column


def infer_column_kinds(program: Program, declared: Mapping[str, tuple[Kind, ...]]) -> Program:
    """Return the program with the kinds of all columns; `declared` are the kinds of relations that have some."""
    inferred: ColumnKinds = {
        (name, column): kind for name, kinds in declared.items() for column, kind in enumerate(kinds)
    }
    before = -1
    while len(inferred) != before:
        before = len(inferred)
        for rule in program.rules:
            add_rule(rule, inferred)
        for reduction in program.reductions:
            add_reduction(reduction, inferred)
    return replace(program, relations=tuple(with_inferred(relation, inferred) for relation in program.relations))


def with_inferred(relation: Relation, inferred: ColumnKinds) -> Relation:
    """Return a relation with its inferred kinds."""
    columns = []
    for number, column in enumerate(relation.columns):
        kind = inferred.get((relation.name, number), "number")
        columns.append(RelationColumn(column.name, kind, kind, column.at))
    return replace(relation, columns=tuple(columns))


def add_rule(rule: Rule, inferred: ColumnKinds) -> None:
    """Add the kinds of the columns in a rule's head, as far as its body determines them."""
    kinds: dict[str, Kind] = {}
    for atom, _ in atoms(rule.body):
        for column, term in enumerate(atom.arguments):
            if isinstance(term, VariableTerm) and (atom.relation, column) in inferred:
                kinds.setdefault(term.name, inferred[atom.relation, column])
    formulas = tuple(subformulas(rule.body))
    for formula in (*formulas, *formulas):  # twice: an equation may precede the one that it needs
        if isinstance(formula, Comparison) and formula.op == "=":
            add_equation(formula, kinds)
    for head in rule.heads:
        for column, term in enumerate(head.arguments):
            kind = kind_of(term, kinds)
            if kind is not None:
                inferred.setdefault((head.relation, column), kind)


def add_equation(equation: Comparison, kinds: dict[str, Kind]) -> None:
    """Add the kind of a variable on one side of an equation from the kind of the other side."""
    for side, other in ((equation.left, equation.right), (equation.right, equation.left)):
        kind = kind_of(other, kinds)
        if isinstance(side, VariableTerm) and kind is not None:
            kinds.setdefault(side.name, kind)


def kind_of(term: Term, kinds: dict[str, Kind]) -> Kind | None:
    """Return the kind of a term, or None if it is not determined yet."""
    match term:
        case VariableTerm():
            return kinds.get(term.name)
        case ConstantTerm():
            return term.kind or "number"
        case CallTerm() if term.functor in FUNCTORS:  # check_names reports others
            results = {result for _, result in FUNCTORS[term.functor].alternatives}
            if len(results) == 1:
                return next(iter(results))
            inner = [kind_of(argument, kinds) for argument in term.arguments]
            definite = [  # integer literals can take the kind of another argument, so they come second
                kind
                for argument, kind in zip(term.arguments, inner, strict=True)
                if not isinstance(argument, ConstantTerm)
            ]
            return next((kind for kind in (*definite, *inner) if kind is not None), None)
    return None


def add_reduction(reduction: AggregateReduction, inferred: ColumnKinds) -> None:
    """Add the kinds of a reduction's columns from those of its source."""
    for column in range(reduction.keys):
        if (reduction.source, column) in inferred:
            inferred.setdefault((reduction.relation, column), inferred[reduction.source, column])
    kind: Kind | None = {"count": "number", "mean": "float"}.get(reduction.op)
    if kind is None and reduction.value is not None:
        kind = inferred.get((reduction.source, reduction.value))
    if kind is not None:
        inferred.setdefault((reduction.relation, reduction.keys), kind)

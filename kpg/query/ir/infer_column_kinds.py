"""Infer the kinds of columns without a declared type: those of rules, from the relations that the rules read.

Attributes have declared kinds. A column of a rule has the kind that the body gives to its variable. Inference repeats
over all rules until it adds no kind. A column without a kind then belongs to a rule that can never hold; its kind is
"number".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kpg.query.ir.constructors import Signatures, is_constructor
from kpg.query.ir.literals import Comparison, aggregates, atoms, subformulas
from kpg.query.ir.program import AggregateReduction, Program, Relation, RelationColumn, Rule
from kpg.query.ir.terms import AggregateTerm, CallTerm, ConstantTerm, Kind, Term, VariableTerm

ColumnKinds = dict[tuple[str, int], Kind]  # by relation and column


def infer_column_kinds(program: Program, declared: Mapping[str, tuple[Kind, ...]]) -> Program:
    """Return the program with the kinds of all columns; `declared` are the kinds of relations that have some."""
    inferred: ColumnKinds = {
        (name, column): kind for name, kinds in declared.items() for column, kind in enumerate(kinds)
    }
    before, signatures = -1, program.signatures()
    while len(inferred) != before:
        before = len(inferred)
        for rule in program.rules:
            add_rule(rule, inferred, signatures)
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


def add_rule(rule: Rule, inferred: ColumnKinds, signatures: Signatures) -> None:
    """Add the kinds of the columns in a rule's head, as far as its body determines them."""
    kinds: dict[str, Kind] = {}
    inside = (atom for aggregate in aggregates(rule.body) for atom in atoms(aggregate.body))
    for atom, _ in (*atoms(rule.body), *inside):
        for column, term in enumerate(atom.arguments):
            if (atom.relation, column) in inferred:
                add_pattern(term, inferred[atom.relation, column], kinds, signatures)
    formulas = tuple(subformulas(rule.body))
    for formula in (*formulas, *formulas):  # twice: an equation may precede the one that it needs
        if isinstance(formula, Comparison) and formula.op == "=":
            add_equation(formula, kinds, signatures)
    for head in rule.heads:
        for column, term in enumerate(head.arguments):
            kind = kind_of(term, kinds, signatures)
            if kind is not None:
                inferred.setdefault((head.relation, column), kind)


def add_pattern(term: Term, kind: Kind, kinds: dict[str, Kind], signatures: Signatures) -> None:
    """Add the kinds of the variables of an argument: of the variable itself, or of those in a record."""
    if isinstance(term, VariableTerm):
        kinds.setdefault(term.name, kind)
    elif isinstance(term, CallTerm):
        constructor = signatures.constructor(replace(term, kind=kind))
        for argument, field_kind in zip(term.arguments, constructor.kinds if constructor else (), strict=False):
            add_pattern(argument, field_kind, kinds, signatures)


def add_equation(equation: Comparison, kinds: dict[str, Kind], signatures: Signatures) -> None:
    """Add the kind of a variable on one side of an equation from the kind of the other side."""
    for side, other in ((equation.left, equation.right), (equation.right, equation.left)):
        kind = kind_of(other, kinds, signatures)
        if kind is not None:
            add_pattern(side, kind, kinds, signatures)


def kind_of(term: Term, kinds: dict[str, Kind], signatures: Signatures) -> Kind | None:
    """Return the kind of a term, or None if it is not determined yet."""
    match term:
        case VariableTerm():
            return kinds.get(term.name)
        case ConstantTerm():
            return term.kind or "number"
        case CallTerm():
            functor = signatures.of(term)
            results = {result for _, result in functor.alternatives} if functor is not None else set()
            if len(results) < 2 or is_constructor(term):  # check_names reports unknown functors
                return next(iter(results)) if len(results) == 1 else None
            inner = [kind_of(argument, kinds, signatures) for argument in term.arguments]
            definite = [  # integer literals can take the kind of another argument, so they come second
                kind
                for argument, kind in zip(term.arguments, inner, strict=True)
                if not isinstance(argument, ConstantTerm)
            ]
            return next((kind for kind in (*definite, *inner) if kind is not None), None)
        case AggregateTerm() if term.op in ("count", "mean"):
            return "number" if term.op == "count" else "float"
        case AggregateTerm() if term.target is not None:
            return kind_of(term.target, kinds, signatures)
    return None


def add_reduction(reduction: AggregateReduction, inferred: ColumnKinds) -> None:
    """Add the kinds of a reduction's columns from those of its source."""
    for column in range(reduction.keys):
        if (reduction.source, column) in inferred:
            inferred.setdefault((reduction.relation, column), inferred[reduction.source, column])
    kind: Kind | None = {"count": "number", "mean": "float", "variance": "float"}.get(reduction.op)
    if kind is None and reduction.value is not None:
        kind = inferred.get((reduction.source, reduction.value))
    if kind is not None:
        inferred.setdefault((reduction.relation, reduction.keys), kind)

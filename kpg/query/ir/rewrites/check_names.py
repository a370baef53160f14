"""Check that all names exist and that atoms and calls have the right number of arguments. The program is unchanged."""

from __future__ import annotations

from kpg.errors import ProgramError, TypeMismatch
from kpg.query.ir.check_calls import check_call
from kpg.query.ir.constructors import Signatures
from kpg.query.ir.functors import TESTS
from kpg.query.ir.literals import Atom, Formula, Test, aggregates, subformulas, terms
from kpg.query.ir.program import Directive, Program, Relation, SizeLimit
from kpg.query.ir.terms import subterms
from kpg.query.source_text import failure, undefined


def check_names(program: Program) -> Program:
    """Return the program unchanged; raise ProgramError if a relation, functor or arity is wrong."""
    relations: dict[str, Relation] = {}
    signatures = program.signatures()
    for relation in program.relations:
        if relation.name in relations:
            first = relations[relation.name].at
            raise failure(
                ProgramError, f"relation {relation.name!r} is declared twice", relation.at, hint=f"First at {first}."
            )
        relations[relation.name] = relation
        check_columns(relation)
    for rule in program.rules:
        for head in rule.heads:
            check_formula(head, relations, signatures)
        check_formula(rule.body, relations, signatures)
    named: list[Directive | SizeLimit] = [*program.directives, *program.limits]
    for directive in named:
        if directive.relation not in relations:
            raise undefined("relation", directive.relation, relations, directive.at)
    return program


def check_columns(relation: Relation) -> None:
    """Raise ProgramError if two columns have the same name."""
    seen: set[str] = set()
    for column in relation.columns:
        if column.name in seen:
            what = f"{relation.name} has two columns called {column.name!r}"
            raise failure(ProgramError, what, column.at, hint="Rename one of them.")
        seen.add(column.name)


def check_formula(formula: Formula, relations: dict[str, Relation], signatures: Signatures) -> None:
    """Check the names in a formula, including the bodies of aggregates."""
    for part in subformulas(formula):
        if isinstance(part, Atom):
            check_atom(part, relations)
        if isinstance(part, Test) and len(part.arguments) != len(TESTS[part.name]):
            expected = len(TESTS[part.name])
            raise failure(TypeMismatch, f"{part.name} takes {expected} arguments, not {len(part.arguments)}", part.at)
    for term in terms(formula):
        for subterm in subterms(term):
            check_call(subterm, signatures)
    for aggregate in aggregates(formula):
        if aggregate.target is not None:
            for subterm in subterms(aggregate.target):
                check_call(subterm, signatures)
        check_formula(aggregate.body, relations, signatures)


def check_atom(atom: Atom, relations: dict[str, Relation]) -> None:
    """Raise if the relation of an atom does not exist or has another number of columns."""
    relation = relations.get(atom.relation)
    if relation is None:
        named = (name for name, other in relations.items() if not other.generated)
        raise undefined("relation", atom.relation, named, atom.at)
    if len(atom.arguments) != relation.arity:
        columns = ", ".join(f"{column.name}: {column.type}" for column in relation.columns)
        raise failure(
            TypeMismatch,
            f"{atom.relation} has {relation.arity} columns, not {len(atom.arguments)}",
            atom.at,
            hint=f"It is declared as {atom.relation}({columns}).",
        )

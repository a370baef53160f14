"""Refuse names that do not exist and atoms of the wrong arity; nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator

from kpg.errors import ProgramError, TypeMismatch, UndefinedName
from kpg.query.ir.functors import FUNCTORS, MANY, TESTS
from kpg.query.ir.literals import Atom, Conjunction, Disjunction, Formula, Negation, Test, aggregates, terms
from kpg.query.ir.program import Program, Relation
from kpg.query.ir.terms import CallTerm, Term, subterms
from kpg.query.source_text import did_you_mean, failure


def check_names(program: Program) -> Program:
    """The same program, all of whose relations, functors and columns exist."""
    relations: dict[str, Relation] = {}
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
            check_formula(head, relations)
        check_formula(rule.body, relations)
    for directive in program.directives:
        if directive.relation not in relations:
            hint = did_you_mean(directive.relation, relations)
            raise failure(UndefinedName, f"no relation is called {directive.relation!r}", directive.at, hint=hint)
    return program


def check_columns(relation: Relation) -> None:
    """Refuse two columns of one name."""
    seen: set[str] = set()
    for column in relation.columns:
        if column.name in seen:
            raise failure(ProgramError, f"{relation.name} has two columns called {column.name!r}", column.at)
        seen.add(column.name)


def check_formula(formula: Formula, relations: dict[str, Relation]) -> None:
    """Refuse unknown names anywhere in a formula."""
    for part in parts(formula):
        if isinstance(part, Atom):
            check_atom(part, relations)
        if isinstance(part, Test) and len(part.arguments) != len(TESTS[part.name]):
            wanted = len(TESTS[part.name])
            raise failure(TypeMismatch, f"{part.name} takes {wanted} arguments, not {len(part.arguments)}", part.at)
    for term in terms(formula):
        for each in subterms(term):
            check_call(each)
    for aggregate in aggregates(formula):
        if aggregate.target is not None:
            for each in subterms(aggregate.target):
                check_call(each)
        check_formula(aggregate.body, relations)


def parts(formula: Formula) -> Iterator[Formula]:
    """A formula and what it is made of."""
    yield formula
    if isinstance(formula, Negation):
        yield from parts(formula.formula)
    elif isinstance(formula, (Conjunction, Disjunction)):
        for part in formula.parts:
            yield from parts(part)


def check_atom(atom: Atom, relations: dict[str, Relation]) -> None:
    """Refuse an unknown relation, or another number of arguments than it has columns."""
    relation = relations.get(atom.relation)
    if relation is None:
        hint = did_you_mean(atom.relation, [name for name, known in relations.items() if not known.made])
        raise failure(UndefinedName, f"no relation is called {atom.relation!r}", atom.at, hint=hint)
    if len(atom.arguments) != relation.arity:
        columns = ", ".join(f"{column.name}: {column.type}" for column in relation.columns)
        raise failure(
            TypeMismatch,
            f"{atom.relation} has {relation.arity} columns, not {len(atom.arguments)}",
            atom.at,
            hint=f"It is declared as {atom.relation}({columns}).",
        )


def check_call(term: Term) -> None:
    """Refuse an unknown functor, or a wrong number of arguments."""
    if not isinstance(term, CallTerm):
        return
    functor = FUNCTORS.get(term.functor)
    if functor is None:
        hint = did_you_mean(term.functor, [name for name in FUNCTORS if name.isidentifier()])
        raise failure(UndefinedName, f"no functor is called {term.functor!r}", term.at, hint=hint)
    if not functor.least <= len(term.arguments) <= functor.most:
        most = "or more" if functor.most == MANY else f"to {functor.most}"
        wanted = str(functor.least) if functor.least == functor.most else f"{functor.least} {most}"
        raise failure(TypeMismatch, f"{term.functor} takes {wanted} arguments, not {len(term.arguments)}", term.at)

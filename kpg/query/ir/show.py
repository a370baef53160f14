"""Format programs as text in the notation of Datalog, for explanations, error messages and tests."""

from __future__ import annotations

import json
from dataclasses import replace

from kpg.query.ir.constructors import CAST, FIELD, IS_TAGGED, RECORD, field_access
from kpg.query.ir.literals import (
    Atom,
    Comparison,
    Conjunction,
    Disjunction,
    Formula,
    Negation,
    Test,
    Truth,
)
from kpg.query.ir.program import AggregateReduction, Program, Relation, Rule
from kpg.query.ir.terms import AggregateTerm, CallTerm, ConstantTerm, Term, VariableTerm, WildcardTerm

INFIX = {"+", "-", "*", "/", "%", "^", "band", "bor", "bxor", "bshl", "bshr", "bshru", "land", "lor", "lxor"}


def show_term(term: Term) -> str:
    """Return a term as text."""
    match term:
        case VariableTerm():
            return term.name
        case WildcardTerm():
            return "_"
        case ConstantTerm():
            return json.dumps(term.value, ensure_ascii=False)
        case CallTerm():
            arguments = [show_term(argument) for argument in term.arguments]
            if term.functor == RECORD:
                return f"[{', '.join(arguments)}]"
            if term.functor.startswith(FIELD):
                return f"{arguments[0]}.{field_access(term.functor).name}"
            if term.functor.startswith(CAST):
                return f"as({arguments[0]}, {term.functor.removeprefix(CAST)})"
            if not arguments:
                return term.functor
            if term.functor in INFIX and len(arguments) == 2:
                return f"({arguments[0]} {term.functor} {arguments[1]})"
            return f"{term.functor}({', '.join(arguments)})"
        case AggregateTerm():
            target = "" if term.target is None else f" {show_term(term.target)}"
            return f"{term.op}{target} : {{ {show(term.body)} }}"


def show(formula: Formula) -> str:
    """Return a formula as text."""
    match formula:
        case Atom():
            return f"{formula.relation}({', '.join(map(show_term, formula.arguments))})"
        case Comparison():
            return f"{show_term(formula.left)} {formula.op} {show_term(formula.right)}"
        case Test():
            if formula.name.startswith(IS_TAGGED):
                access = field_access(formula.name)
                return f"{show_term(formula.arguments[0])} is {access.tag or '[...]'}"
            sign = "" if formula.positive else "!"
            return f"{sign}{formula.name}({', '.join(map(show_term, formula.arguments))})"
        case Truth():
            return "true" if formula.holds else "false"
        case Negation():
            return f"!{show(formula.formula)}"
        case Conjunction():
            parts = [f"({show(part)})" if isinstance(part, Disjunction) else show(part) for part in formula.parts]
            return ", ".join(parts)
        case Disjunction():
            return "; ".join(map(show, formula.parts))


def show_rule(rule: Rule) -> str:
    """Return a rule as text."""
    heads = ", ".join(map(show, rule.heads))
    body = show(rule.body)
    if rule.subsumes and isinstance(rule.body, Conjunction):
        condition = show(replace(rule.body, parts=rule.body.parts[1:]))
        return f"{heads} <= {show(rule.body.parts[0])} :- {condition}."
    return f"{heads} :- {body}." if body and body != "true" else f"{heads}."


def show_reduction(reduction: AggregateReduction) -> str:
    """Return a reduction in words."""
    if reduction.op == "class":
        return f"{reduction.relation} = the class of each element of {reduction.source}."
    if reduction.op == "number":
        return f"{reduction.relation} = the rows of {reduction.source}, numbered by history."
    of = "" if reduction.value is None else f" of column {reduction.value}"
    first = f" {reduction.limit}" if reduction.limit else ""
    return (
        f"{reduction.relation} = {reduction.op}{first}{of} of {reduction.source} by its first {reduction.keys} columns."
    )


def show_relation(relation: Relation) -> str:
    """Return the declaration of a relation."""
    columns = ", ".join(f"{column.name}: {column.type}" for column in relation.columns)
    domains = ["(" + ", ".join(relation.columns[column].name for column in domain) + ")" for domain in relation.domains]
    qualifier = (
        " eqrel" if relation.kind == "equivalence" else f" choice-domain {', '.join(domains)}" if domains else ""
    )
    return f".decl {relation.name}({columns}){qualifier}"


def show_program(program: Program) -> str:
    """Return all declarations, rules and reductions, one on each line."""
    lines = [show_relation(relation) for relation in program.relations]
    lines += [show_rule(rule) for rule in program.rules]
    lines += [show_reduction(reduction) for reduction in program.reductions]
    return "\n".join(lines)

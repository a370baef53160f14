"""Turn constructed values without variables into constants, and rules without a body into facts.

    p([1, nil]).              ->   the fact p("[1, nil]")
    q(x) :- p([1, nil], x).   ->   q(x) :- p("[1, nil]", x).

The constant is the canonical text of the record (kpg.columns.record_text), which its column accepts.
"""

from __future__ import annotations

from dataclasses import replace

from kpg.columns import record_text
from kpg.query.ir.body_variables import literals
from kpg.query.ir.constructors import NIL, Signatures, is_constructor
from kpg.query.ir.literals import map_terms
from kpg.query.ir.program import Fact, Program, Rule
from kpg.query.ir.terms import CallTerm, ConstantTerm, Kind, Term


def fold_records(program: Program) -> Program:
    """Return the program with constants for values that are known, and facts for heads that are."""
    signatures = program.signatures()
    rules, facts = list[Rule](), list(program.facts)
    for rule in (fold_rule(rule, signatures) if signatures.records else rule for rule in program.rules):
        is_ground = all(isinstance(term, ConstantTerm) for term in rule.head.arguments)
        if program.derives_facts or literals(rule) or not is_ground:
            rules.append(rule)
        else:
            values = tuple(term.value for term in rule.head.arguments if isinstance(term, ConstantTerm))
            facts.append(Fact(rule.head.relation, values, rule.at))
    return replace(program, rules=tuple(rules), facts=tuple(facts))


def fold_rule(rule: Rule, signatures: Signatures) -> Rule:
    """Return one rule with constants for known records."""

    def fold(term: Term) -> Term:
        if not is_constructor(term):
            return term
        assert isinstance(term, CallTerm)
        if term.functor == NIL:
            return ConstantTerm(record_text.NIL, term.kind, term.at)
        constructor = signatures.constructor(term)
        assert constructor is not None
        texts = [field_text(field, kind) for field, kind in zip(term.arguments, constructor.kinds, strict=True)]
        known = [text for text in texts if text is not None]
        if len(known) < len(texts):
            return term
        return ConstantTerm(record_text.make(constructor.tag, known), term.kind, term.at)

    heads = tuple(map_terms(head, fold, inside=True) for head in rule.heads)
    return replace(rule, heads=heads, body=map_terms(rule.body, fold, inside=True))  # type: ignore[arg-type]


def field_text(term: Term, kind: Kind) -> str | None:
    """Return a constant as a field of a record, or None if the term is not a constant."""
    if not isinstance(term, ConstantTerm):
        return None
    if kind in ("number", "unsigned", "symbol", "bool"):
        return record_text.write_scalar(term.value)
    if kind == "float":
        return record_text.write_scalar(float(term.value) + 0.0)  # -0.0 becomes 0.0
    return str(term.value)

"""Replace variables that occur once by wildcards, so that joins do not carry columns that nothing reads.

p(x) :- q(x, y), r(x, z).   ->   p(x) :- q(x, _), r(x, _).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from kpg.query.ir.literals import Atom, Conjunction, Formula, Negation, variables
from kpg.query.ir.program import Program, Rule
from kpg.query.ir.terms import VariableTerm, WildcardTerm


def blank_unused(program: Program) -> Program:
    """Return the program with wildcards for variables that occur once."""
    return program.with_rules(tuple(map(blank_rule, program.rules)))


def blank_rule(rule: Rule) -> Rule:
    """Return one rule with wildcards in the atoms of its body."""
    occurrences = Counter(variable.name for part in (rule.head, rule.body) for variable in variables(part))

    def blank(formula: Formula) -> Formula:
        match formula:
            case Atom():
                return replace(formula, arguments=tuple(
                    WildcardTerm(term.at) if isinstance(term, VariableTerm) and occurrences[term.name] == 1 else term
                    for term in formula.arguments
                ))  # fmt: skip
            case Negation():
                return replace(formula, formula=blank(formula.formula))
            case Conjunction():
                return replace(formula, parts=tuple(map(blank, formula.parts)))
        return formula

    return replace(rule, body=blank(rule.body))

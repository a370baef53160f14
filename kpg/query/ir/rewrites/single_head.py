"""Split rules with several heads into one rule for each: a, b :- body.  ->  a :- body.  b :- body."""

from __future__ import annotations

from dataclasses import replace

from kpg.query.ir.program import Program


def single_head(program: Program) -> Program:
    """Return the program with one head for each rule."""
    return program.with_rules(tuple(replace(rule, heads=(head,)) for rule in program.rules for head in rule.heads))

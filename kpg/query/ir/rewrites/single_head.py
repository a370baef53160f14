"""A rule with several heads becomes as many rules: a, b :- body.  ->  a :- body.  b :- body."""

from __future__ import annotations

from dataclasses import replace

from kpg.query.ir.program import Program


def single_head(program: Program) -> Program:
    """The program with one head for each rule."""
    return program.with_rules(tuple(replace(rule, heads=(head,)) for rule in program.rules for head in rule.heads))

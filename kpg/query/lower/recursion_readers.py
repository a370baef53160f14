"""Rules that read a recursion, evaluated inside its operator.

    with_readers(program, stratum, known, obstacle)     the recursion and the relations that can join it

`nextVisible(a, b) :- hasValue(a), skip(a, b), hasValue(b).` reads the recursion `skip`. As a join of its own it would
need an index of `skip`, which takes several times the memory of the operator's set of codes. Inside the operator, the
rule is evaluated for the new rows of each round, and `skip` itself leaves the operator only if something else reads it.

A relation joins the recursion if all that its rules read is known before the recursion or belongs to it, and if the
rules are joins without negations of the recursion (`obstacle`). Only insert-only operators take readers: a maintained
one would keep a level for each of their rows, and evaluate their rules backward.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from kpg.query.ir.literals import atoms
from kpg.query.ir.program import Program, Stratum

Obstacle = Callable[[Program, Stratum], str | None]


def with_readers(program: Program, stratum: Stratum, known: Collection[str], obstacle: Obstacle) -> Stratum:
    """Return a recursion with all relations that only read it and relations known before it."""
    later = program.strata[program.strata.index(stratum) + 1 :]
    for reader in later:
        if can_join(program, stratum, reader, known):
            joined = Stratum((*stratum.relations, *reader.relations), recursive=True)
            stratum = joined if obstacle(program, joined) is None else stratum
    return stratum


def can_join(program: Program, stratum: Stratum, reader: Stratum, known: Collection[str]) -> bool:
    """Return whether a relation reads a recursion, and otherwise only relations known before it."""
    (name, *others) = reader.relations
    rules = program.rules_of(name)
    read = [(atom.relation, positive) for rule in rules for atom, positive in atoms(rule.body)]
    reduced = any(reduction.relation == name for reduction in program.reductions)
    special = any(rule.role or rule.joins for rule in rules) or any(limit.relation == name for limit in program.limits)
    return (
        not (reader.recursive or others or reduced or special)
        and program.by_name()[name].kind == "plain"
        and all(positive if of in stratum.relations else of in known for of, positive in read)
        and any(of in stratum.relations for of, _ in read)
    )

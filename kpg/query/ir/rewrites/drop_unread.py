"""Relations that no answer needs are not computed: their rules go, and so do they, if a rewrite made them.

A program without any output is left as it is.
"""

from __future__ import annotations

from dataclasses import replace

from kpg.query.ir.program import Program, Stratum
from kpg.query.ir.rewrites.stratify import dependencies


def drop_unread(program: Program) -> Program:
    """The program with what its outputs need."""
    wanted = program.wanted()
    if not wanted:
        return program
    reads: dict[str, set[str]] = {}
    for edge in dependencies(program):
        reads.setdefault(edge.reader, set()).add(edge.read)
    needed, queue = set(wanted), list(wanted)
    for name in queue:
        queue += [other for other in reads.get(name, ()) if other not in needed]
        needed |= reads.get(name, set())
    inputs = {directive.relation for directive in program.directives if directive.kind == "input"}
    keep = needed | inputs
    strata = [
        Stratum(tuple(name for name in each.relations if name in keep), each.recursive and each.relations[0] in needed)
        for each in program.strata
    ]
    return replace(
        program,
        relations=tuple(relation for relation in program.relations if relation.name in keep),
        rules=tuple(rule for rule in program.rules if rule.head.relation in needed),
        reductions=tuple(each for each in program.reductions if each.relation in needed),
        facts=tuple(fact for fact in program.facts if fact.relation in keep),
        strata=tuple(stratum for stratum in strata if stratum.relations),
    )

"""Drop the relations that no output needs, with their rules and facts. Declared inputs stay.

A program without outputs is unchanged.
"""

from __future__ import annotations

from dataclasses import replace

from kpg.query.ir.program import Program, Stratum
from kpg.query.ir.rewrites.stratify import dependencies


def drop_unread(program: Program) -> Program:
    """Return the program with only the relations that its outputs need, and its inputs."""
    outputs = program.outputs()
    if not outputs:
        return program
    reads: dict[str, set[str]] = {}
    for edge in dependencies(program):
        reads.setdefault(edge.reader, set()).add(edge.read)
    needed, queue = set(outputs), list(outputs)
    for name in queue:
        queue += [other for other in reads.get(name, ()) if other not in needed]
        needed |= reads.get(name, set())
    inputs = {directive.relation for directive in program.directives if directive.kind == "input"}
    keep = needed | inputs | {relation.input_of for relation in program.relations if relation.name in needed}
    strata = [
        Stratum(
            tuple(name for name in stratum.relations if name in keep),
            stratum.recursive and stratum.relations[0] in needed,
        )
        for stratum in program.strata
    ]
    return replace(
        program,
        relations=tuple(relation for relation in program.relations if relation.name in keep),
        rules=tuple(rule for rule in program.rules if rule.head.relation in needed),
        reductions=tuple(reduction for reduction in program.reductions if reduction.relation in needed),
        facts=tuple(fact for fact in program.facts if fact.relation in keep),
        strata=tuple(stratum for stratum in strata if stratum.relations),
    )

"""Demand from the outputs inwards: a program computes only the rows of its recursions that its outputs need.

    restricted = demand_from_outputs(program, counts)
    restricted.program      an equivalent program: the same outputs, at all times
    restricted.reason       which recursions are restricted, by which columns; empty if none is

Outputs are computed in full, and so is each relation that a rule reads without bound arguments. If the program
requests magic sets (`.pragma "magic-transform"`, or `magic` behind a declaration), the requested relations are
restricted wherever the result stays stratified. Otherwise kpg decides (kpg/query/demand/demand_choice.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from kpg.query.demand.adornment import MagicSetRewrite
from kpg.query.demand.demand_choice import DemandChoice
from kpg.query.demand.demand_gain import DemandGain
from kpg.query.demand.magic_sets import assemble, replace_relation, rewrite, unrestrictable_relations
from kpg.query.demand.row_counts import InputCounts, RowCounts
from kpg.query.ir.body_variables import literals
from kpg.query.ir.literals import Atom
from kpg.query.ir.program import EVERYTHING, Program, RelationColumn, Rule
from kpg.query.ir.terms import VariableTerm

NO_COUNTS = InputCounts()


@dataclass(frozen=True, slots=True)
class RestrictedProgram:
    """A program that computes only what its outputs need, and an explanation."""

    program: Program
    reason: str = ""


def demand_from_outputs(program: Program, counts: InputCounts = NO_COUNTS) -> RestrictedProgram:
    """Return a compiled program with its recursions restricted to the rows that the outputs need."""
    if not program.outputs():
        return RestrictedProgram(program)
    if program.magic:
        return restricted_by_request(program)
    if EVERYTHING in program.no_magic or not any(stratum.recursive for stratum in program.strata):
        return RestrictedProgram(program)
    gain = DemandGain(program, RowCounts(program, counts))
    choice = DemandChoice(program, gain, frozenset(unrestrictable_relations(program) | set(program.no_magic)))
    if not choice.columns:
        return RestrictedProgram(program)
    outputs = program.outputs()
    rewritten, reasons = rewrite(program, {}, outputs, choice)
    lines = [line for name in choice.readers if (line := explain(name, rewritten, choice))]
    if not lines:
        return RestrictedProgram(program)
    drop_copies(rewritten)
    return RestrictedProgram(assemble(program, rewritten, {}, outputs, reasons).program, "\n".join(lines))


def drop_copies(rewritten: MagicSetRewrite) -> None:
    """Read a relation itself where a demand only copies it: its index by these columns may exist already."""
    for adorned in [adorned for adorned in rewritten.adorned.values() if adorned.bound]:
        rules = [rule for rule in rewritten.rules if rule.head.relation == adorned.demand]
        copied = copied_relation(rules[0]) if len(rules) == 1 else ""
        if copied and not rewritten.relations[copied].bag:
            others = (rule for rule in rewritten.rules if rule is not rules[0])
            rewritten.rules = [replace_relation(rule, adorned.demand, copied) for rule in others]
            del rewritten.relations[adorned.demand]


def copied_relation(rule: Rule) -> str:
    """Return the relation that a rule copies as it is; empty if the rule does anything else."""
    body = literals(rule)
    if len(body) != 1 or not isinstance(body[0], Atom) or body[0].arguments != rule.head.arguments:
        return ""
    names = [term.name for term in rule.head.arguments if isinstance(term, VariableTerm)]
    return body[0].relation if len(set(names)) == len(rule.head.arguments) else ""


def restricted_by_request(program: Program) -> RestrictedProgram:
    """Return a program with the relations restricted that it requests magic sets for."""
    names = {relation.name for relation in program.relations if not relation.generated}
    generated = {relation.name for relation in program.relations if relation.generated}
    wanted = names | generated if EVERYTHING in program.magic else (names & set(program.magic)) | generated
    excluded = names if EVERYTHING in program.no_magic else set(program.no_magic)
    outputs = program.outputs()
    rewritten, reasons = rewrite(program, {}, outputs, None, frozenset(wanted - excluded - set(outputs)))
    bound = [adorned for adorned in rewritten.adorned.values() if adorned.bound and adorned.relation.name in names]
    if not bound:
        return RestrictedProgram(program)
    lines = [
        f"{adorned.relation.name} is computed on demand for its {names_of(adorned.bound_columns)}" for adorned in bound
    ]
    return RestrictedProgram(assemble(program, rewritten, {}, outputs, reasons).program, "\n".join(lines))


def explain(name: str, rewritten: MagicSetRewrite, choice: DemandChoice) -> str:
    """Say by which columns a recursion is restricted, and which relations demand it; empty if it is not."""
    for adorned in rewritten.adorned.values():
        if adorned.relation.name == name and adorned.bound:
            readers = ", ".join(reader for reader in choice.readers[name])
            return f"{name} is computed only for the {names_of(adorned.bound_columns)} that {readers} needs"
    return ""


def names_of(columns: tuple[RelationColumn, ...]) -> str:
    """Return the names of columns as text."""
    return ", ".join(column.name for column in columns)

"""Magic sets: rewrite a program so that it computes a relation only for given arguments.

    magic = magic_sets(program, "tc", ("x",))
    magic.program     compiled; its only output is magic.answer
    magic.seeds       an input relation with the bound columns: insert (1,) to ask for tc(1, _)
    magic.answer      the rows of tc with an argument as their x
    magic.reason      how it is computed, and which relations demand cannot restrict

Arguments are rows: adding or removing one is an update, and one dataflow serves a thousand of them. A relation is
computed in full if a rule reads it without a bound argument, if its demand would depend on a negation or an aggregate
of it, or if the rewrite would produce too many rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kpg.columns.pause_points import pause
from kpg.errors import UndefinedName
from kpg.query.demand.adorned_relation import AdornedRelation
from kpg.query.demand.adornment import MagicSetRewrite
from kpg.query.demand.demand_choice import DemandChoice
from kpg.query.ir.compile import REWRITES, compile
from kpg.query.ir.literals import Atom, Conjunction
from kpg.query.ir.program import EVERYTHING, Directive, Program, Relation, Rule, Stratum
from kpg.query.ir.rewrites.blank_unused import blank_unused
from kpg.query.ir.rewrites.drop_unread import drop_unread
from kpg.query.ir.rewrites.stratify import dependencies, stratify, strongly_connected
from kpg.query.ir.terms import AGGREGATES, VariableTerm
from kpg.query.ir.verify import verify
from kpg.query.source_text import did_you_mean

MAX_GROWTH = 10  # a rewrite with this many times more rules costs more than it saves


@dataclass(frozen=True, slots=True)
class MagicProgram:
    """A program that answers for arguments, the relations to write them to and to read, and an explanation."""

    program: Program
    seeds: str
    answer: str
    reason: str


@dataclass(frozen=True, slots=True)
class CombinedMagicProgram:
    """A program that answers several relations for arguments, and an explanation."""

    program: Program
    queries: dict[str, tuple[str, str]]  # relation -> (seeds, answer)
    reason: str


def magic_sets(program: Program, relation: str, bound: tuple[str, ...]) -> MagicProgram:
    """Rewrite a program to compute the rows of a relation for given arguments in its bound columns."""
    combined = magic_sets_together(program, {relation: bound}, keep=())
    seeds, answer = combined.queries[relation]
    return MagicProgram(combined.program, seeds, answer, combined.reason)


def magic_sets_together(
    program: Program, bound: Mapping[str, tuple[str, ...]], keep: Iterable[str] | None = None
) -> CombinedMagicProgram:
    """Rewrite a program for several relations with bound columns; `keep` are outputs in full, by default all others."""
    program = compiled(program, bound)
    goals = {name: adorn(program, name, columns) for name, columns in bound.items()}
    kept = [output for output in program.outputs() if output not in goals] if keep is None else list(keep)
    rewritten, reasons = rewrite(program, goals, kept)
    return assemble(program, rewritten, goals, kept, reasons)


def compiled(program: Program, outputs: Iterable[str]) -> Program:
    """Compile a program, if it is not compiled yet, with the demanded relations among its outputs."""
    if program.strata:
        return program
    existing = {relation.name for relation in program.relations}
    missing = [name for name in outputs if name in existing and name not in program.outputs()]
    return compile(replace(program, directives=(*program.directives, *(Directive("output", name) for name in missing))))


def adorn(program: Program, name: str, columns: tuple[str, ...]) -> AdornedRelation:
    """Return a relation adorned with its bound columns; raise UndefinedName if it or a column does not exist."""
    relations = program.by_name()
    if name not in relations:
        raise UndefinedName(f"no relation is called {name!r}", hint=did_you_mean(name, relations))
    numbers = {column.name: number for number, column in enumerate(relations[name].columns)}
    for column in columns:
        if column not in numbers:
            raise UndefinedName(f"{name} has no column {column!r}", hint=did_you_mean(column, numbers))
    return AdornedRelation(relations[name], tuple(sorted({numbers[column] for column in columns})))


def rewrite(
    program: Program,
    goals: Mapping[str, AdornedRelation],
    keep: Iterable[str],
    choice: DemandChoice | None = None,
    allowed: frozenset[str] | None = None,
) -> tuple[MagicSetRewrite, dict[str, str]]:
    """Repeat the rewrite with more relations in full until it is stratified and small; return it, and the reasons."""
    unbound = [name for name, adorned in goals.items() if not adorned.bound]
    reasons = dict.fromkeys(unbound, "no argument is bound")
    needed_in_full, unchanged = {*keep, *unbound}, with_dependencies(program, recursions_with_aggregates(program))
    reasons |= dict.fromkeys(unchanged, "it aggregates inside its recursion")
    special = with_dependencies(program, special_relations(program))
    reasons |= dict.fromkeys(special - unchanged, "its rows depend on rows that no rule connects them to")
    unchanged |= special
    while True:
        rewritten = MagicSetRewrite(program, frozenset(unchanged), frozenset(needed_in_full), choice, allowed)
        for name in needed_in_full:
            rewritten.require(name)
        for name, adorned in goals.items():
            rewritten.require(name, adorned.bound if rewritten.can_be_demanded(name) else ())
        rewritten.complete()
        crossed = set() if rewritten.read_in_full else unstratified_relations(rewritten) - unchanged
        if rewritten.read_in_full:
            needed_in_full |= rewritten.read_in_full.keys()
            reasons |= rewritten.read_in_full
        elif crossed:
            unchanged = with_dependencies(program, unchanged | crossed)
            reasons |= dict.fromkeys(crossed, "its demand would depend on what negates or aggregates it")
        elif len(rewritten.rules) > MAX_GROWTH * (len(program.rules) + 1):
            why = f"{len(rewritten.rules):,} rules would replace {len(program.rules):,}"
            needed_in_full |= {adorned.relation.name for adorned in rewritten.adorned.values()}
            reasons |= {adorned.relation.name: why for adorned in rewritten.adorned.values() if adorned.bound}
        else:
            return rewritten, reasons


def recursions_with_aggregates(program: Program) -> set[str]:
    """Return the relations of recursions that contain an aggregate."""
    relations = program.by_name()
    recursions = [stratum.relations for stratum in program.strata if stratum.recursive]
    return {name for names in recursions if any(relations[name].generated for name in names) for name in names}


def special_relations(program: Program) -> set[str]:
    """Return the relations that are not just what their rules derive, and the parts that rewrites made of them."""
    special = {relation.name for relation in program.relations if relation.kind != "plain" or relation.input_of}
    numbered = {reduction.relation for reduction in program.reductions if reduction.op not in AGGREGATES}
    return special | numbered  # a row has one number for all its readers


def unrestrictable_relations(program: Program) -> set[str]:
    """Return the relations that must be computed in full by their own rules, with all that they read."""
    return with_dependencies(program, recursions_with_aggregates(program) | special_relations(program))


def with_dependencies(program: Program, names: set[str]) -> set[str]:
    """Return relations and all that they read."""
    closure, queue = set(names), list(names)
    edges = dependencies(program)
    for name in queue:
        new = {edge.read for edge in edges if edge.reader == name} - closure
        closure |= new
        queue += new
    return closure


def unstratified_relations(rewritten: MagicSetRewrite) -> set[str]:
    """Return the original relations of which the demand closes a cycle through a negation or an aggregate."""
    candidate = Program(
        tuple(rewritten.relations.values()), tuple(rewritten.rules), reductions=tuple(rewritten.reductions)
    )
    edges = dependencies(candidate)
    graph: dict[str, list[str]] = {name: [] for name in rewritten.relations}
    for edge in edges:
        graph[edge.reader].append(edge.read)
    numbers = {name: number for number, names in enumerate(strongly_connected(graph)) for name in names}
    aggregates = {reduction.relation for reduction in rewritten.reductions}
    crossing = [edge for edge in edges if edge.blocking and numbers[edge.reader] == numbers[edge.read]]
    return {
        rewritten.adorned[edge.reader if edge.reader in aggregates else edge.read].relation.name for edge in crossing
    }


def assemble(
    program: Program,
    rewritten: MagicSetRewrite,
    goals: Mapping[str, AdornedRelation],
    keep: list[str],
    reasons: dict[str, str],
) -> CombinedMagicProgram:
    """Return the program of a rewrite, with the relations of arguments and answers."""
    relations, rules = dict(rewritten.relations), list(rewritten.rules)
    names: dict[str, tuple[str, str]] = {}
    for name, adorned in goals.items():
        relations[adorned.arguments] = adorned.argument_relation(adorned.arguments)
        rows, answer = adorned.name, adorned.answer
        if adorned.name not in relations or not adorned.bound:
            rows = name
            reasons.setdefault(name, "it is not computed")
        elif adorned.demand in {rule.head.relation for rule in rules}:
            rules.append(copy_rule(adorned, adorned.demand, adorned.arguments))
        else:  # no rule demands more: the demand are the arguments
            rules = with_arguments(rules, adorned)
            del relations[adorned.demand]
            answer = adorned.name
        if answer == adorned.answer:
            relations[answer] = replace(adorned.demanded_rows(), name=answer)
            rules.append(answer_rule(adorned, rows))
        names[name] = adorned.arguments, answer
    inputs = [directive for directive in program.directives if directive.kind == "input"]
    originals = program.by_name()
    for relation in list(relations.values()):
        if relation.input_of:
            relations.setdefault(relation.input_of, originals[relation.input_of])
    for directive in inputs:
        relations.setdefault(directive.relation, originals[directive.relation])
    outputs = [
        directive for directive in program.directives if directive.kind != "input" and directive.relation in keep
    ]
    magic = replace(
        program,
        relations=tuple(relations.values()),
        rules=tuple(rules),
        reductions=tuple(rewritten.reductions),
        facts=tuple(fact for fact in program.facts if fact.relation in relations),
        directives=(*inputs, *outputs, *(Directive("output", answer) for _, answer in names.values())),
        magic=(),
        no_magic=(EVERYTHING,),  # it is restricted already
    )
    magic = with_empty_relations(magic, rewritten)
    for last_rewrite in (stratify, drop_unread, blank_unused):
        pause()
        magic = last_rewrite(magic)
    magic = with_seed_relations(magic, [relations[seeds] for seeds, _ in names.values()])
    pause()
    verify(magic, tuple(function.__name__ for function in REWRITES))
    return CombinedMagicProgram(magic, names, explanation(magic, goals, reasons))


def with_arguments(rules: list[Rule], adorned: AdornedRelation) -> list[Rule]:
    """Return rules that read the arguments instead of the demand."""
    replaced, demand, arguments = [], adorned.demand, adorned.arguments
    for rule in rules:
        pause()
        replaced.append(replace_relation(rule, demand, arguments))
    return replaced


def with_empty_relations(magic: Program, rewritten: MagicSetRewrite) -> Program:
    """Mark relations that lost their last rule as generated: they are empty, and not inputs."""
    derived = {rule.head.relation for rule in magic.rules} | {reduction.relation for reduction in magic.reductions}
    empty = {name for name, adorned in rewritten.adorned.items() if adorned.bound} - derived
    relations = (
        replace(relation, generated=True) if relation.name in empty else relation for relation in magic.relations
    )
    return replace(magic, relations=tuple(relations))


def with_seed_relations(magic: Program, seeds: list[Relation]) -> Program:
    """Add the relations of arguments that no rule reads."""
    unread = [relation for relation in seeds if relation.name not in magic.by_name()]
    strata = tuple(Stratum((relation.name,), False) for relation in unread)
    return replace(magic, relations=(*magic.relations, *unread), strata=(*strata, *magic.strata))


def copy_rule(adorned: AdornedRelation, head: str, body: str) -> Rule:
    """Return a rule that copies arguments."""
    at = adorned.relation.at
    terms = tuple(VariableTerm(column.name, at) for column in adorned.bound_columns)
    kinds = tuple((column.name, column.kind) for column in adorned.bound_columns)
    return Rule((Atom(head, terms, at),), Conjunction((Atom(body, terms, at),), at), at, kinds)


def answer_rule(adorned: AdornedRelation, rows: str) -> Rule:
    """Return the rule for the rows that belong to arguments."""
    at = adorned.relation.at
    terms = tuple(VariableTerm(column.name, at) for column in adorned.relation.columns)
    arguments = tuple(terms[number] for number in adorned.bound)
    body = (*((Atom(adorned.arguments, arguments, at),) if arguments else ()), Atom(rows, terms, at))
    kinds = tuple((column.name, column.kind) for column in adorned.relation.columns)
    return Rule((Atom(adorned.answer, terms, at),), Conjunction(body, at), at, kinds)


def replace_relation(rule: Rule, old: str, new: str) -> Rule:
    """Return a rule that reads relation `new` instead of `old`. Only positive atoms read demand."""
    assert isinstance(rule.body, Conjunction)
    parts = tuple(
        replace(part, relation=new) if isinstance(part, Atom) and part.relation == old else part
        for part in rule.body.parts
    )
    return replace(rule, body=replace(rule.body, parts=parts))


def explanation(magic: Program, goals: Mapping[str, AdornedRelation], reasons: dict[str, str]) -> str:
    """Explain how each goal is computed, and which relations are computed in full, and why."""
    relations = magic.by_name()
    derived = {rule.head.relation for rule in magic.rules}
    lines = []
    for name, adorned in goals.items():
        columns = ", ".join(column.name for column in adorned.bound_columns)
        if adorned.bound and adorned.name in relations:
            how = "by the values that each argument reaches" if adorned.reach in relations else "by demand"
            lines.append(f"{name} is computed for its arguments ({columns}), {how}")
        elif name not in derived:
            lines.append(f"{name} is read by its arguments ({columns}): {reasons[name]}")
    in_full = [name for name in reasons if name in derived and not relations[name].generated]
    return "\n".join([*lines, *(f"{name} is computed in full: {reasons[name]}" for name in in_full)])

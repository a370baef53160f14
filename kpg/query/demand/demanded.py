"""A program that answers for given arguments only: what to insert them into, and what to read.

    asked = demanded(program, "tc", ("x",))
    asked.program     compiled; its only output is asked.answer
    asked.seeds       an input relation with the bound columns: insert (1,) to ask for tc(1, _)
    asked.answer      the rows of tc whose x is an argument
    asked.reason      how it is computed, and what could not be asked for

Arguments are rows, so adding and removing one is an update, and a thousand are one dataflow. A relation is computed in
full where somebody reads it unasked, where the demand for it would depend on a negation or an aggregate of it, and
where the rules would become too many.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kpg.errors import UndefinedName
from kpg.query.demand.adorning import Adorning
from kpg.query.demand.names import DemandedRelation
from kpg.query.ir.compile import RULES, compile
from kpg.query.ir.literals import Atom, Conjunction
from kpg.query.ir.program import Directive, Program, Relation, Rule, Stratum
from kpg.query.ir.rewrites.blank_unused import blank_unused
from kpg.query.ir.rewrites.drop_unread import drop_unread
from kpg.query.ir.rewrites.stratify import dependencies, stratify, strongly_connected
from kpg.query.ir.terms import VariableTerm
from kpg.query.ir.verify import verify
from kpg.query.source_text import did_you_mean

GROWTH = 10  # as many times more rules are too many


@dataclass(frozen=True, slots=True)
class Demanded:
    """A program that answers for arguments, the relations to write them to and to read, and why it is so."""

    program: Program
    seeds: str
    answer: str
    reason: str


@dataclass(frozen=True, slots=True)
class Together:
    """A program that answers several relations for arguments: relation to (seeds, answer), and why it is so."""

    program: Program
    asked: dict[str, tuple[str, str]]
    reason: str


def demanded(program: Program, relation: str, bound: tuple[str, ...]) -> Demanded:
    """A program for the rows of a relation whose bound columns hold given arguments."""
    made = demanded_together(program, {relation: bound}, keep=())
    seeds, answer = made.asked[relation]
    return Demanded(made.program, seeds, answer, made.reason)


def demanded_together(
    program: Program, bound: Mapping[str, tuple[str, ...]], keep: Iterable[str] | None = None
) -> Together:
    """A program for several relations, each by its bound columns; `keep`: outputs wanted in full, else all others."""
    program = ready(program, bound)
    goals = {name: asked_by(program, name, columns) for name, columns in bound.items()}
    whole = [each for each in program.wanted() if each not in goals] if keep is None else list(keep)
    attempt, reasons = settle(program, goals, whole)
    return assembled(program, attempt, goals, whole, reasons)


def ready(program: Program, wanted: Iterable[str]) -> Program:
    """The program compiled, if it is not, with what is asked for among its outputs."""
    if program.strata:
        return program
    known = {relation.name for relation in program.relations}
    missing = [name for name in wanted if name in known and name not in program.wanted()]
    return compile(replace(program, directives=(*program.directives, *(Directive("output", each) for each in missing))))


def asked_by(program: Program, name: str, columns: tuple[str, ...]) -> DemandedRelation:
    """A relation by the columns that are bound."""
    relations = program.by_name()
    if name not in relations:
        raise UndefinedName(f"no relation is called {name!r}", hint=did_you_mean(name, relations))
    places = {column.name: place for place, column in enumerate(relations[name].columns)}
    for column in columns:
        if column not in places:
            raise UndefinedName(f"{name} has no column {column!r}", hint=did_you_mean(column, places))
    return DemandedRelation(relations[name], tuple(sorted({places[column] for column in columns})))


def settle(
    program: Program, goals: Mapping[str, DemandedRelation], keep: Iterable[str]
) -> tuple[Adorning, dict[str, str]]:
    """Attempts, each with more relations in full, until one holds together; and why each is in full."""
    unbound = [name for name, asked in goals.items() if not asked.places]
    reasons = dict.fromkeys(unbound, "no argument is bound")
    whole, full = {*keep, *unbound}, in_full(program, loops_with_aggregates(program))
    reasons |= dict.fromkeys(full, "it aggregates inside its recursion")
    while True:
        attempt = Adorning(program, frozenset(full), frozenset(whole))
        for name in whole:
            attempt.need(name)
        for name, asked in goals.items():
            attempt.need(name, asked.places if attempt.can_be_asked(name) else ())
        attempt.finish()
        crossed = set() if attempt.unasked else unstratified(attempt) - full
        if attempt.unasked:
            whole |= attempt.unasked.keys()
            reasons |= attempt.unasked
        elif crossed:
            full = in_full(program, full | crossed)
            reasons |= dict.fromkeys(crossed, "its demand would depend on what negates or aggregates it")
        elif len(attempt.rules) > GROWTH * (len(program.rules) + 1):
            why = f"{len(attempt.rules):,} rules would take the place of {len(program.rules):,}"
            whole |= {each.relation.name for each in attempt.asked.values()}
            reasons |= {each.relation.name: why for each in attempt.asked.values() if each.places}
        else:
            return attempt, reasons


def loops_with_aggregates(program: Program) -> set[str]:
    """The relations of recursions that a rewrite put an aggregate's relations into."""
    relations = program.by_name()
    looping = [each.relations for each in program.strata if each.recursive]
    return {name for names in looping if any(relations[each].made for each in names) for name in names}


def in_full(program: Program, names: set[str]) -> set[str]:
    """Some relations and all that they read."""
    found, queue = set(names), list(names)
    edges = dependencies(program)
    for name in queue:
        new = {edge.read for edge in edges if edge.reader == name} - found
        found |= new
        queue += new
    return found


def unstratified(attempt: Adorning) -> set[str]:
    """The relations, as they were, whose demand made a cycle through a negation or an aggregate."""
    candidate = Program(tuple(attempt.relations.values()), tuple(attempt.rules), reductions=tuple(attempt.reductions))
    edges = dependencies(candidate)
    graph: dict[str, list[str]] = {name: [] for name in attempt.relations}
    for edge in edges:
        graph[edge.reader].append(edge.read)
    place = {name: number for number, part in enumerate(strongly_connected(graph)) for name in part}
    aggregates = {reduction.relation for reduction in attempt.reductions}
    crossing = [edge for edge in edges if edge.how and place[edge.reader] == place[edge.read]]
    return {attempt.asked[edge.reader if edge.reader in aggregates else edge.read].relation.name for edge in crossing}


def assembled(
    program: Program, attempt: Adorning, goals: Mapping[str, DemandedRelation], keep: list[str], reasons: dict[str, str]
) -> Together:
    """The program of an attempt, with the relations of arguments and answers."""
    relations, rules = dict(attempt.relations), list(attempt.rules)
    names: dict[str, tuple[str, str]] = {}
    for name, asked in goals.items():
        relations[asked.arguments] = asked.of_arguments(asked.arguments)
        rows, answer = asked.name, asked.answer
        if asked.name not in relations or not asked.places:
            rows = name
            reasons.setdefault(name, "it is not computed")
        elif any(rule.head.relation == asked.demand for rule in rules):
            rules.append(reading(asked, asked.demand, asked.arguments))
        else:  # nothing else demands: what is demanded are the arguments
            rules = [renamed(rule, asked.demand, asked.arguments) for rule in rules]
            del relations[asked.demand]
            answer = asked.name
        if answer == asked.answer:
            relations[answer] = replace(asked.rows(), name=answer)
            rules.append(answering(asked, rows))
        names[name] = asked.arguments, answer
    inputs = [each for each in program.directives if each.kind == "input"]
    known = program.by_name()
    for each in inputs:
        relations.setdefault(each.relation, known[each.relation])
    outputs = [each for each in program.directives if each.kind != "input" and each.relation in keep]
    made = replace(
        program,
        relations=tuple(relations.values()),
        rules=tuple(rules),
        reductions=tuple(attempt.reductions),
        facts=tuple(fact for fact in program.facts if fact.relation in relations),
        directives=(*inputs, *outputs, *(Directive("output", answer) for _, answer in names.values())),
    )
    made = blank_unused(drop_unread(stratify(with_nothing(made, attempt))))
    made = with_unread(made, [relations[seeds] for seeds, _ in names.values()])
    verify(made, tuple(each.__name__ for each in RULES))
    return Together(made, names, explained(made, goals, reasons))


def with_nothing(made: Program, attempt: Adorning) -> Program:
    """A program in which relations that lost their last rule hold nothing, and are not taken for inputs."""
    derived = {rule.head.relation for rule in made.rules} | {each.relation for each in made.reductions}
    empty = {name for name, asked in attempt.asked.items() if asked.places} - derived
    return replace(made, relations=tuple(replace(r, made=True) if r.name in empty else r for r in made.relations))


def with_unread(made: Program, seeds: list[Relation]) -> Program:
    """A program that has the relations of arguments, also where no rule reads them."""
    lost = [each for each in seeds if each.name not in made.by_name()]
    strata = tuple(Stratum((each.name,), False) for each in lost)
    return replace(made, relations=(*made.relations, *lost), strata=(*strata, *made.strata))


def reading(asked: DemandedRelation, head: str, body: str) -> Rule:
    """A rule that copies arguments."""
    at = asked.relation.at
    terms = tuple(VariableTerm(column.name, at) for column in asked.columns)
    kinds = tuple((column.name, column.kind) for column in asked.columns)
    return Rule((Atom(head, terms, at),), Conjunction((Atom(body, terms, at),), at), at, kinds)


def answering(asked: DemandedRelation, rows: str) -> Rule:
    """The rule for the rows that belong to arguments."""
    at = asked.relation.at
    every = tuple(VariableTerm(column.name, at) for column in asked.relation.columns)
    given = tuple(every[place] for place in asked.places)
    body = (*((Atom(asked.arguments, given, at),) if given else ()), Atom(rows, every, at))
    kinds = tuple((column.name, column.kind) for column in asked.relation.columns)
    return Rule((Atom(asked.answer, every, at),), Conjunction(body, at), at, kinds)


def renamed(rule: Rule, old: str, new: str) -> Rule:
    """A rule that reads another relation instead; demand is read by positive atoms only."""
    assert isinstance(rule.body, Conjunction)
    parts = tuple(
        replace(part, relation=new) if isinstance(part, Atom) and part.relation == old else part
        for part in rule.body.parts
    )
    return replace(rule, body=replace(rule.body, parts=parts))


def explained(made: Program, goals: Mapping[str, DemandedRelation], reasons: dict[str, str]) -> str:
    """How each goal is computed, and what is computed in full, and why."""
    left = made.by_name()
    derived = {rule.head.relation for rule in made.rules}
    lines = []
    for name, asked in goals.items():
        by = ", ".join(column.name for column in asked.columns)
        if asked.places and asked.name in left:
            how = "by the ways from each argument" if asked.way in left else "by demand"
            lines.append(f"{name} is computed for its arguments ({by}), {how}")
        elif name not in derived:
            lines.append(f"{name} is read by its arguments ({by}): {reasons[name]}")
    whole = [name for name in reasons if name in derived and not left[name].made]
    return "\n".join([*lines, *(f"{name} is computed in full: {reasons[name]}" for name in whole)])

"""Which way a rule is joined, and why.

    binary   two atoms at a time; what comes in between is indexed, so that a change there meets few rows
    delta    one pipeline of half joins for each atom; nothing in between is kept
    hector   the same, one variable at a time: count, propose, validate; within the worst-case bound of the output

By itself: nothing to choose with one atom or two; Hector where atoms close a cycle or share several variables, since
there joins of two may be far larger than the result; delta queries for other rules; binary joins inside recursion,
where what is in between is mostly read again in the next round. A hint ("auto", "binary", "delta", "hector", and for
Hector an order of variables: "hector a b c") is followed where that is possible; if not, the reason says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kpg.errors import BadPlan
from kpg.query.binary_joins import JoinStep, Step, live_after, steps_of
from kpg.query.delta_pipelines import DeltaPipeline, PipelineSource, is_connected, sources_of
from kpg.query.delta_planner import pipelines_of
from kpg.query.ir.body_variables import literals
from kpg.query.ir.literals import Atom
from kpg.query.ir.program import Program, Relation, Rule
from kpg.query.source_text import did_you_mean

STRATEGIES = ("auto", "binary", "delta", "hector")


@dataclass(frozen=True, slots=True)
class RulePlan:
    """How a rule is joined: by steps, `live[i]` being what is read after step i, or by pipelines."""

    rule: Rule
    strategy: str
    reason: str
    steps: tuple[Step, ...]
    live: tuple[frozenset[str], ...]
    pipelines: tuple[DeltaPipeline, ...] = ()

    def products(self) -> list[JoinStep]:
        """The steps that pair everything with everything."""
        return [step for step in self.steps if isinstance(step, JoinStep) and not step.on]


@dataclass(frozen=True, slots=True)
class Situation:
    """What matters for the choice beyond the rule itself."""

    relations: Mapping[str, Relation]
    joins: str = "auto"  # the hint for all rules
    recursive: frozenset[str] = frozenset()  # relations that depend on themselves
    static: frozenset[str] = frozenset()  # relations that never change again
    ordered: bool = True  # whether times outside loops are totally ordered


NOTHING = Situation({})


def situation_of(program: Program, joins: str = "auto") -> Situation:
    """What a program says that matters for the choice; a hint that is given goes before its own."""
    going_round = {name for stratum in program.strata if stratum.recursive for name in stratum.relations}
    hint = joins if joins != "auto" else program.joins or "auto"
    return Situation(program.by_name(), hint, frozenset(going_round))


def plan_rule(rule: Rule, around: Situation = NOTHING) -> RulePlan:
    """The plan of a rule whose body is in order."""
    hint, order = hint_of(rule, around)
    sources = sources_of(rule, dict(around.relations), around.static)
    strategy, reason = choose(rule, sources, hint, around)
    if strategy not in ("delta", "hector"):
        steps = steps_of(rule)
        return RulePlan(rule, strategy, reason, steps, live_after(rule, steps))
    if order:
        check_order(order, sources)
    found = pipelines_of(rule, sources, hector=strategy == "hector", order=order)
    never = [str(source.atom.relation) for source in sources if source.static]
    if never:
        reason += f"; {', '.join(dict.fromkeys(never))} never changes and has no pipeline"
    return RulePlan(rule, strategy, reason, (), (), tuple(found))


def hint_of(rule: Rule, around: Situation) -> tuple[str, tuple[str, ...]]:
    """The hint that counts for a rule: the one of its own, or else the one for all; and an order of variables."""
    hint = around.joins if around.joins != "auto" else rule.joins or "auto"
    check_hint(hint)
    name, *order_words = hint.split()
    order = tuple(order_words)
    known = {name for source in sources_of(rule, {}) for name in source.variables if " " not in name}
    if order and known - set(order):
        if around.joins != "auto":
            return name, ()  # an order for another rule
        missing = ", ".join(sorted(known - set(order)))
        what = f"the order {' '.join(order)} does not name {missing}"
        raise BadPlan(what, hint="Name every variable that is joined.")
    return name, tuple(name for name in order if name in known)  # others are constants by now, or read nowhere


def check_hint(joins: str) -> None:
    """Refuse a hint that means nothing."""
    name = (joins.split() or [""])[0]
    if name not in STRATEGIES:
        hint = did_you_mean(name, STRATEGIES) or f"Say one of {', '.join(STRATEGIES)}."
        raise BadPlan(f"no way to join is called {name!r}", hint=hint)
    if len(joins.split()) > 1 and name != "hector":
        raise BadPlan(f"an order of variables is for hector, not for {name}")


def choose(rule: Rule, sources: Sequence[PipelineSource], hint: str, around: Situation) -> tuple[str, str]:
    """The strategy for a rule, and why."""
    atoms = [literal for literal in literals(rule) if isinstance(literal, Atom)]
    if not atoms:
        return "constant", "no atoms: the rule holds or not, whatever the data"
    if len(atoms) == 1 and (len(sources) == 1 or hint not in ("delta", "hector")):
        return "scan", "one atom: nothing to join"
    obstacle = obstacle_to(sources, around)
    if hint == "binary":
        return "binary", f"as the hint says; {in_between(len(atoms))}"
    if hint != "auto" and obstacle is None:
        return hint, f"as the hint says; {shape_of(sources, hint)}"
    if hint != "auto":
        return "binary", f"{hint} was asked for, but {obstacle}"
    if len(atoms) == 2:
        return "binary", "two atoms: one join, nothing in between to keep"
    if obstacle is not None:
        return "binary", f"{in_between(len(atoms))}, because {obstacle}"
    if is_cyclic(sources) or shared_by_several(sources):
        return "hector", shape_of(sources, "hector")
    if rule.head.relation in around.recursive:
        return "binary", f"in recursion, {in_between(len(atoms))}"
    return "delta", shape_of(sources, "delta")


def in_between(atoms: int) -> str:
    """What binary joins of so many atoms keep."""
    return f"{atoms} atoms: {atoms - 1} joins, {atoms - 2} results in between are indexed"


def shape_of(sources: Sequence[PipelineSource], strategy: str) -> str:
    """What makes a strategy fit for some sources."""
    atoms = [source for source in sources if not source.negative]
    if strategy == "delta":
        return f"{len(atoms)} atoms: {len(sources)} pipelines, nothing in between is kept"
    if is_cyclic(sources):
        why = "they close a cycle"
    elif shared_by_several(sources):
        why = "some share several variables"
    elif all(source.single for source in atoms):
        why = "columns are functional, so that nothing needs to be counted"
    else:
        why = "one variable at a time"
    return f"{len(atoms)} atoms: {why}; the cheapest proposes, the others validate"


def obstacle_to(sources: Sequence[PipelineSource], around: Situation) -> str | None:
    """Why a rule cannot be delta queries, if so."""
    if not around.ordered:
        return "times of several coordinates are not totally ordered"
    if any(not source.variables for source in sources):
        return "an atom has no variables"
    if not is_connected(sources):
        return "no variable connects all atoms"
    return None


def is_cyclic(sources: Sequence[PipelineSource]) -> bool:
    """Whether atoms close a cycle: what is left when ears are taken off again and again (Graham, Yu, Özsoyoğlu)."""
    edges = [set(source.variables) for source in sources if not source.negative]
    changed = True
    while changed and len(edges) > 1:
        changed = False
        for place, edge in enumerate(edges):
            others = edges[:place] + edges[place + 1 :]
            shared = {name for name in edge if any(name in other for other in others)}
            if any(shared <= other for other in others):
                edges, changed = others, True
                break
    return len(edges) > 1


def shared_by_several(sources: Sequence[PipelineSource]) -> bool:
    """Whether two atoms have two variables in common: keys repeat."""
    atoms = [source.variables for source in sources if not source.negative]
    return any(len(one & other) > 1 for place, one in enumerate(atoms) for other in atoms[:place])


def check_order(order: Sequence[str], sources: Sequence[PipelineSource]) -> None:
    """Refuse an order in which a variable cannot be reached from those before it."""
    atoms = [source for source in sources if not source.negative]
    for place, name in enumerate(order):
        before = set(order[:place])
        if place and not any(name in atom.variables and atom.variables & before for atom in atoms):
            raise BadPlan(
                f"the order {' '.join(order)} is not suitable",
                detail=f"No atom leads from {', '.join(order[:place])} to {name}.",
                hint="Name each variable after one that it shares an atom with.",
            )

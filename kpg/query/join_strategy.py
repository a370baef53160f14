"""Choose how the atoms of a rule are joined.

    binary   two atoms at a time, from left to right; intermediate results are indexed
    delta    one pipeline of half joins for each atom; no intermediate results are kept
    hector   a delta query that binds one variable at a time: count, propose, validate; within the worst-case bound

Without a hint: one atom or two leave nothing to choose. Hector is for atoms that close a cycle: there a join of two
atoms can be far larger than the result. Binary joins are for all other rules inside a recursion, because the next round
reads most intermediate results again. Outside, Hector is also for atoms that share several variables, and delta queries
are for all other rules. A hint ("auto", "binary", "delta", "hector", and for Hector an order of variables: "hector a b
c") is followed where possible; otherwise the reason in the plan says why not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kpg.errors import BadPlan
from kpg.query.binary_joins import JoinStep, Step, generates, live_after, steps_of, variables_of_step
from kpg.query.delta_pipelines import DeltaPipeline, PipelineSource, is_connected, sources_of
from kpg.query.delta_planner import pipelines_of
from kpg.query.failing_literals import FallibleBody, error_rules, fallible_body
from kpg.query.ir.body_variables import definitions, literals, variable_names
from kpg.query.ir.fallible_terms import FAILS
from kpg.query.ir.literals import Atom, Conjunction, Test, variables
from kpg.query.ir.program import Program, Relation, Rule
from kpg.query.ir.rewrites.order_joins import in_order
from kpg.query.ir.terms import variables as variables_of_term
from kpg.query.late_steps import failing_terms, late_steps
from kpg.query.source_text import did_you_mean

STRATEGIES = ("auto", "binary", "delta", "hector")


@dataclass(frozen=True, slots=True)
class RulePlan:
    """How a rule is joined: by steps, or by pipelines and then steps. `live[i]` are the variables read after step i.

    `errors` are plans for the errors that the rule itself does not report: see kpg/query/failing_literals.py.
    """

    rule: Rule
    strategy: str
    reason: str
    steps: tuple[Step, ...]
    live: tuple[frozenset[str], ...]
    pipelines: tuple[DeltaPipeline, ...] = ()
    errors: tuple[RulePlan, ...] = ()

    def products(self) -> list[JoinStep]:
        """Return the joins without a common variable: they pair all rows with all rows."""
        return [step for step in self.steps if isinstance(step, JoinStep) and not step.on]


@dataclass(frozen=True, slots=True)
class PlanningContext:
    """The facts about a program that the choice of a strategy depends on, besides the rule itself."""

    relations: Mapping[str, Relation]
    joins: str = "auto"  # the hint for all rules
    recursive: frozenset[str] = frozenset()  # relations that depend on themselves
    static: frozenset[str] = frozenset()  # relations that never change again
    ordered: bool = True  # whether times outside loops are totally ordered


NO_CONTEXT = PlanningContext({})


def planning_context(program: Program, joins: str = "auto") -> PlanningContext:
    """Return the context of a program's rules; the hint `joins` takes precedence over the program's own."""
    recursive = {name for stratum in program.strata if stratum.recursive for name in stratum.relations}
    hint = joins if joins != "auto" else program.joins or "auto"
    return PlanningContext(program.by_name(), hint, frozenset(recursive))


def plan_rule(rule: Rule, context: PlanningContext = NO_CONTEXT) -> RulePlan:
    """Plan a rule with an ordered body."""
    original = rule
    if rule.role == "errors":
        rule = with_failure_test(rule)
    hint, order = hint_of(rule, context)
    sources = sources_of(rule, dict(context.relations), context.static)
    strategy, reason = choose(rule, sources, hint, context)
    fallible = fallible_body(rule)
    if strategy not in ("delta", "hector"):
        is_split = not fallible.is_exact() and rule.role != "silent"
        plan = step_plan(rule, fallible, strategy, reason, is_split)
        return replace(plan, errors=error_plans(original)) if is_split else plan
    if order:
        check_order(order, sources)
    late = late_steps(fallible.late_literals, bound_before_late(fallible), rule, rule.role == "silent")
    head = {variable.name for variable in variables(rule.head)}
    needed = frozenset(head.union(*map(variables_of_step, late)))
    pipelines = pipelines_of(rule, fallible.before_late, needed, sources, hector=strategy == "hector", order=order)
    static = [str(source.atom.relation) for source in sources if source.static]
    if static:
        reason += f"; {', '.join(dict.fromkeys(static))} never changes and has no pipeline"
    errors = () if rule.role == "silent" else error_plans(original)
    return RulePlan(rule, strategy, reason, tuple(late), live_after(head, late), tuple(pipelines), errors)


def step_plan(rule: Rule, fallible: FallibleBody, strategy: str, reason: str, is_split: bool) -> RulePlan:
    """Plan a rule as steps. If it `is_split`, other plans report the errors of its early literals."""
    is_silent = rule.role == "silent"
    silent = fallible.early_literals if is_split or is_silent else ()
    steps = steps_of(fallible.before_late, rule, silent)
    steps += late_steps(fallible.late_literals, bound_before_late(fallible), rule, is_silent)
    head = {variable.name for variable in variables(rule.head)}
    return RulePlan(rule, strategy, reason, tuple(steps), live_after(head, steps))


def bound_before_late(fallible: FallibleBody) -> set[str]:
    """Return the variables that are bound before the late literals."""
    return {name for literal in fallible.before_late for name in variable_names(literal)}


def error_plans(rule: Rule) -> tuple[RulePlan, ...]:
    """Return the plans for the errors of a rule's early literals: joins that start from the tuples that fail."""
    reason = "tuples on which an expression fails, restricted by the literals that do not use its value"
    rules = error_rules(rule, fallible_body(rule))
    return tuple(step_plan(error, fallible_body(error), "errors", reason, is_split=True) for error in rules)


def with_failure_test(rule: Rule) -> Rule:
    """Return a rule for errors that begins with the tuples on which a late literal fails."""
    fallible = fallible_body(rule)
    terms = failing_terms(fallible.late_literals, bound_before_late(fallible), rule)
    if not terms:
        return rule
    start = frozenset(variable.name for term in terms for variable in variables_of_term(term))
    body = in_order([*fallible.before_late, Test(FAILS, terms, True, rule.at)], start)
    return replace(rule, body=Conjunction((*body, *fallible.late_literals), rule.body.at))


def hint_of(rule: Rule, context: PlanningContext) -> tuple[str, tuple[str, ...]]:
    """Return the hint for a rule, the one for all rules or else its own, and its order of variables."""
    hint = context.joins if context.joins != "auto" else rule.joins or "auto"
    check_hint(hint)
    name, *order_words = hint.split()
    order = tuple(order_words)
    joined = {name for source in sources_of(rule, {}) for name in source.variables if " " not in name}
    if order and joined - set(order):
        if context.joins != "auto":
            return name, ()  # the order is for another rule
        missing = ", ".join(sorted(joined - set(order)))
        what = f"the order {' '.join(order)} does not name {missing}"
        raise BadPlan(what, hint="Name every variable that is joined.")
    return name, tuple(name for name in order if name in joined)  # rewrites may have eliminated the others


def check_hint(joins: str) -> None:
    """Raise BadPlan if a hint is not valid."""
    name = (joins.split() or [""])[0]
    if name not in STRATEGIES:
        hint = did_you_mean(name, STRATEGIES) or f"The join strategies are {', '.join(STRATEGIES)}."
        raise BadPlan(f"no join strategy is called {name!r}", hint=hint)
    if len(joins.split()) > 1 and name != "hector":
        raise BadPlan(f"an order of variables is for hector, not for {name}", hint=f"Write {name!r} alone.")


def choose(rule: Rule, sources: Sequence[PipelineSource], hint: str, context: PlanningContext) -> tuple[str, str]:
    """Return the strategy for a rule, and the reason."""
    atoms = [literal for literal in literals(rule) if isinstance(literal, Atom)]
    if not atoms:
        return "constant", "no atoms: the rule does not depend on data"
    if rule.role == "errors":
        return "binary", "errors only: joins that start from the tuples that fail"
    if len(atoms) == 1 and (len(sources) == 1 or hint not in ("delta", "hector")):
        return "scan", "one atom: nothing to join"
    obstacle = obstacle_to(rule, sources, context)
    if hint == "binary":
        return "binary", f"as the hint says; {intermediate_results(len(atoms))}"
    if hint != "auto" and obstacle is None:
        return hint, f"as the hint says; {shape_of(sources, hint)}"
    if hint != "auto":
        return "binary", f"{hint} was asked for, but {obstacle}"
    if len(atoms) == 2:
        return "binary", "two atoms: one join, no intermediate result"
    if obstacle is not None:
        return "binary", f"{intermediate_results(len(atoms))}, because {obstacle}"
    if is_cyclic(sources):
        return "hector", shape_of(sources, "hector")
    if rule.head.relation in context.recursive:
        return "binary", f"in recursion, {intermediate_results(len(atoms))}"
    if share_several_variables(sources):
        return "hector", shape_of(sources, "hector")
    return "delta", shape_of(sources, "delta")


def intermediate_results(atoms: int) -> str:
    """Describe the state of binary joins."""
    return f"{atoms} atoms: {atoms - 1} joins, {atoms - 2} intermediate results are indexed"


def shape_of(sources: Sequence[PipelineSource], strategy: str) -> str:
    """Describe why a strategy fits these sources."""
    atoms = [source for source in sources if not source.negative]
    if strategy == "delta":
        return f"{len(atoms)} atoms: {len(sources)} pipelines, no intermediate results"
    if is_cyclic(sources):
        why = "they close a cycle"
    elif share_several_variables(sources):
        why = "some share several variables"
    elif all(source.functional for source in atoms):
        why = "columns are functional, so proposals need no counts"
    else:
        why = "one variable at a time"
    return f"{len(atoms)} atoms: {why}; the cheapest proposes, the others validate"


def obstacle_to(rule: Rule, sources: Sequence[PipelineSource], context: PlanningContext) -> str | None:
    """Return why a rule cannot be a delta query, or None if it can."""
    if any(generates(term) for literal in literals(rule) for _, term in definitions(literal)):
        return "a range that fails must fail once, not in each pipeline"
    if not context.ordered:
        return "times of several coordinates are not totally ordered"
    if any(not source.variables for source in sources):
        return "an atom has no variables"
    if not is_connected(sources):
        return "no variable connects all atoms"
    return None


def is_cyclic(sources: Sequence[PipelineSource]) -> bool:
    """Return whether the atoms close a cycle: whether ear removal (Graham; Yu and Özsoyoğlu) leaves several atoms."""
    edges = [set(source.variables) for source in sources if not source.negative]
    changed = True
    while changed and len(edges) > 1:
        changed = False
        for number, edge in enumerate(edges):
            others = edges[:number] + edges[number + 1 :]
            shared = {name for name in edge if any(name in other for other in others)}
            if any(shared <= other for other in others):
                edges, changed = others, True
                break
    return len(edges) > 1


def share_several_variables(sources: Sequence[PipelineSource]) -> bool:
    """Return whether two atoms have more than one variable in common."""
    atoms = [source.variables for source in sources if not source.negative]
    return any(len(names & other) > 1 for number, names in enumerate(atoms) for other in atoms[:number])


def check_order(order: Sequence[str], sources: Sequence[PipelineSource]) -> None:
    """Raise BadPlan if a variable of the order shares no atom with an earlier one."""
    atoms = [source for source in sources if not source.negative]
    for number, name in enumerate(order):
        before = set(order[:number])
        if number and not any(name in atom.variables and atom.variables & before for atom in atoms):
            raise BadPlan(
                f"the order {' '.join(order)} is not suitable",
                detail=f"No atom has both {name} and one of {', '.join(order[:number])}.",
                hint="Name each variable after one that it shares an atom with.",
            )

"""How a program is computed, as text: strata, rules with their steps, one block for each index and who shares it."""

from __future__ import annotations

from kpg.query.binary_joins import AntiJoinStep, JoinStep, is_set
from kpg.query.delta_pipelines import ExtendStep
from kpg.query.ir.program import Program, Relation, Stratum
from kpg.query.ir.show import show_reduction, show_rule
from kpg.query.join_strategy import RulePlan, plan_rule, situation_of
from kpg.query.lower.lower_recursion import keepable, saturable


def explain(program: Program, joins: str = "auto") -> str:
    """The strata of a compiled program and the indexes that its rules read."""
    lines: list[str] = []
    relations = program.by_name()
    around = situation_of(program, joins)
    plans = {id(rule): plan_rule(rule, around) for rule in program.rules}
    for number, stratum in enumerate(program.strata, 1):
        word = "recursive" if stratum.recursive else "once"
        lines.append(f"stratum {number}: {', '.join(stratum.relations)} ({word})")
        if stratum.recursive:
            lines.append(f"  {how_it_recurs(program, stratum)}")
        for name in stratum.relations:
            rules = program.rules_of(name)
            for rule in rules:
                lines += explain_rule(plans[id(rule)])
            lines += [f"  {show_reduction(each)}" for each in program.reductions if each.relation == name]
            if rules:
                lines.append(f"  {name} is {'a set by itself' if distinct_is_free(program, name) else 'made distinct'}")
    lines += ["", *explain_indexes(list(plans.values()), relations)]
    return "\n".join(lines)


def how_it_recurs(program: Program, stratum: Stratum) -> str:
    """Whether a recursion is one operator, on one worker, or a loop, and why."""
    why = saturable(program, stratum) if program.insert_only else None
    if program.insert_only and why is None:
        return "saturated by one operator: it only grows"
    why = keepable(program, stratum) or why
    return "kept by levels in one operator" if why is None else f"a loop: {why}"


def explain_rule(plan: RulePlan) -> list[str]:
    """A rule, its strategy and its steps."""
    lines = [f"  {show_rule(plan.rule)}", f"    {plan.strategy}: {plan.reason}"]
    lines += [f"    {number}. {step}" for number, step in enumerate(plan.steps, 1)]
    lines += [f"    {pipeline}" for pipeline in plan.pipelines]
    lines += [f"    note: {step}, because no variable connects them" for step in plan.products()]
    return lines


def distinct_is_free(program: Program, name: str) -> bool:
    """Whether a relation has each row once without further ado."""
    rules = program.rules_of(name)
    stratum = next(each for each in program.strata if name in each.relations)
    return len(rules) == 1 and not stratum.recursive and is_set(rules[0])


def explain_indexes(plans: list[RulePlan], relations: dict[str, Relation]) -> list[str]:
    """One block for each index: of what, by what, and which rules read it."""
    readers: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for plan in plans:
        for name, places in indexes_of(plan):
            columns = relations[name].columns
            keys = tuple(columns[place].name for place in places)
            readers.setdefault((name, keys), []).append(show_rule(plan.rule))
    lines: list[str] = []
    for (name, keys), rules in sorted(readers.items()):
        lines.append(f"index of {name} by {', '.join(keys) or 'nothing'}, shared by {len(rules)}")
        lines += [f"  {rule}" for rule in dict.fromkeys(rules)]
    return lines


def indexes_of(plan: RulePlan) -> list[tuple[str, tuple[int, ...]]]:
    """The relations that a plan looks up, and by which columns."""
    found = [
        (step.atom.relation, tuple(place for _, place in step.on))
        for step in plan.steps
        if isinstance(step, (JoinStep, AntiJoinStep))
    ]
    steps = [step for pipeline in plan.pipelines for step in pipeline.steps if isinstance(step, ExtendStep)]
    looks = [look for step in steps for look in step.looks]
    looked = [(look.source.atom.relation, tuple(place for _, place in look.key)) for look in looks]
    return found + list(dict.fromkeys(looked))  # a rule counts once, however many of its pipelines look there

"""Explain how a program is computed: strata, rules with their steps, and indexes with the rules that share them."""

from __future__ import annotations

from kpg.plan.least_value_loops import LeastValueLoop, recognise, strategy_of
from kpg.plan.nodes import LeaveNode
from kpg.plan.restricted_edges import NotLeastValuesError
from kpg.query.binary_joins import AntiJoinStep, JoinStep, is_set
from kpg.query.delta_pipelines import ExtendStep
from kpg.query.ir.program import Program, Relation, Stratum
from kpg.query.ir.show import show_reduction, show_rule
from kpg.query.join_strategy import RulePlan, plan_rule, planning_context
from kpg.query.lower.lower_program import LoweredProgram
from kpg.query.lower.lower_recursion import maintenance_obstacle, saturation_obstacle
from kpg.query.lower.recursion_readers import with_readers


def explain(program: Program, joins: str = "auto") -> str:
    """Describe the strata of a compiled program and the indexes that its rules read."""
    lines: list[str] = []
    relations = program.by_name()
    context = planning_context(program, joins)
    plans = {id(rule): plan_rule(rule, context) for rule in program.rules}
    for number, stratum in enumerate(program.strata, 1):
        word = "recursive" if stratum.recursive else "once"
        lines.append(f"stratum {number}: {', '.join(stratum.relations)} ({word})")
        if stratum.recursive:
            lines.append(f"  {recursion_strategy(program, stratum)}")
        for name in stratum.relations:
            rules = program.rules_of(name)
            for rule in rules:
                lines += explain_rule(plans[id(rule)])
            lines += [
                f"  {show_reduction(reduction)}" for reduction in program.reductions if reduction.relation == name
            ]
            lines += meaning_of(relations[name])
            if rules:
                how = "has no duplicates" if is_distinct(program, name) else "is made distinct"
                lines.append(f"  {name} {how}")
    lines += ["", *explain_indexes(list(plans.values()), relations)]
    return "\n".join(lines)


def meaning_of(relation: Relation) -> list[str]:
    """Describe a relation that is not just what its rules derive."""
    if relation.generated or relation.kind == "plain":
        return []
    domains = [", ".join(relation.columns[column].name for column in domain) for domain in relation.domains]
    words = {
        "equivalence": "an equivalence relation: its classes are kept, not its pairs",
        "subsumed": "only rows that no other row subsumes",
        "aggregated": "one row for each group",
        "choice": f"at most one row for each {' and each '.join(domains)}; choices are kept while they are derived",
    }
    return [f"  {relation.name}: {words[relation.kind]}"]


def recursion_strategy(program: Program, stratum: Stratum) -> str:
    """Say whether a recursion is one operator or a loop, and why."""
    obstacle = saturation_obstacle(program, stratum) if program.insert_only else None
    if program.insert_only and obstacle is None:
        return f"one operator, insert-only: keeps no state for removals{readers_in_operator(program, stratum)}"
    obstacle = maintenance_obstacle(program, stratum) or obstacle
    if obstacle is None:
        return "one operator: keeps the level of each row"
    return loop_strategy(program, stratum, obstacle)


def loop_strategy(program: Program, stratum: Stratum, obstacle: str) -> str:
    """Say whether a recursion that is lowered to a loop keeps least values, and so is one operator on one worker."""
    from kpg.opening import open as open_database

    aggregated = [name for name in stratum.relations if program.by_name()[name].kind == "aggregated"]
    if len(aggregated) != 1 or program.functors:
        return f"a loop: {obstacle}"
    with open_database() as db:
        node = LoweredProgram(db, program).collections[aggregated[0]].node
        try:
            assert isinstance(node, LeaveNode)
            loop = recognise(node, db.symbols)
        except NotLeastValuesError as reason:
            return f"a loop: {obstacle.removesuffix(', or counts rows')}, and {reason}"
    return f"{strategy_of(loop, is_alone=True)}; {on_several_workers(loop)}"


def on_several_workers(loop: LeastValueLoop) -> str:
    """Say how several workers would evaluate a loop of least values."""
    if loop.divided_by is None:
        return "a loop on several workers, since no column of its key stays the same in all joins"
    return f"each of several workers has the rows of its values of {loop.name_outside(loop.divided_by)}"


def readers_in_operator(program: Program, stratum: Stratum) -> str:
    """Say which relations the operator of a recursion derives because they read it."""
    before = program.strata[: program.strata.index(stratum)]
    known = {name for earlier in before for name in earlier.relations}
    joined = with_readers(program, stratum, known, saturation_obstacle)
    readers = joined.relations[len(stratum.relations) :]
    return f"; the operator also derives {', '.join(readers)}, which reads it" if readers else ""


def explain_rule(plan: RulePlan) -> list[str]:
    """Describe a rule, its strategy and its steps."""
    lines = [f"  {show_rule(plan.rule)}", f"    {plan.strategy}: {plan.reason}"]
    lines += [f"    {number}. {step}" for number, step in enumerate(plan.steps, 1)]
    lines += [f"    {pipeline}" for pipeline in plan.pipelines]
    for errors in plan.errors:
        lines += [f"    errors of {show_rule(errors.rule)}", *(f"      {step}" for step in errors.steps)]
    lines += [f"    note: {step}, because no variable connects them" for step in plan.products()]
    return lines


def is_distinct(program: Program, name: str) -> bool:
    """Return whether a relation holds each row once without a `distinct`."""
    rules = [rule for rule in program.rules_of(name) if rule.role != "errors"]
    stratum = next(stratum for stratum in program.strata if name in stratum.relations)
    return len(rules) == 1 and not stratum.recursive and is_set(rules[0])


def explain_indexes(plans: list[RulePlan], relations: dict[str, Relation]) -> list[str]:
    """Describe each index: its relation, its key, and the rules that read it."""
    readers: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for plan in plans:
        for name, key_columns in indexes_of(plan):
            columns = relations[name].columns
            keys = tuple(columns[column].name for column in key_columns)
            readers.setdefault((name, keys), []).append(show_rule(plan.rule))
    lines: list[str] = []
    for (name, keys), rules in sorted(readers.items()):
        lines.append(f"index of {name} by {', '.join(keys) or 'nothing'}, shared by {len(rules)}")
        lines += [f"  {rule}" for rule in dict.fromkeys(rules)]
    return lines


def indexes_of(plan: RulePlan) -> list[tuple[str, tuple[int, ...]]]:
    """Return the relations that a plan looks up, with the columns it looks them up by."""
    indexes = [
        (step.atom.relation, tuple(column for _, column in step.on))
        for step in plan.steps
        if isinstance(step, (JoinStep, AntiJoinStep))
    ]
    steps = [step for pipeline in plan.pipelines for step in pipeline.steps if isinstance(step, ExtendStep)]
    lookups = [lookup for step in steps for lookup in step.lookups]
    looked_up = [(lookup.source.atom.relation, tuple(column for _, column in lookup.key)) for lookup in lookups]
    return indexes + list(dict.fromkeys(looked_up))  # a rule counts once, even if several of its pipelines read it

"""The steps of late literals: after all atoms, with false stronger than failed.

    z = x / y, z > 3, w = y / x, w < 5      w < 5 is false: no solution, and no error even if x / y fails
                                            w < 5 is true: a solution if z > 3, an error if x / y fails

If each literal uses the value of the one before, they are evaluated one after another: after a failure there is nothing
left to decide. Otherwise all conditions are evaluated together, on the same tuples, with the defining terms in place of
their variables; the variables are computed afterwards, where no row can fail any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kpg.query.binary_joins import BindStep, FilterStep, GenerateStep, Step, TogetherStep, step_of
from kpg.query.ir.body_variables import variable_names
from kpg.query.ir.fallible_terms import literal_can_fail
from kpg.query.ir.literals import Comparison, Literal, Test, map_terms
from kpg.query.ir.program import Rule
from kpg.query.ir.terms import Term, VariableTerm, map_term, subterms

MAX_INLINED_TERMS = 1_000  # of one group; a term that repeats its variables may double with each definition

Group = list[tuple[Literal, Step]]


def late_steps(late: Sequence[Literal], bound: set[str], rule: Rule, silent: bool) -> list[Step]:
    """Return the steps of late literals, given the variables that are bound before."""
    steps: list[Step] = []
    group: Group = []
    for literal in generators_first(late, bound, rule):
        step = step_of(literal, bound, rule, first=False)
        bound = bound | variable_names(literal)
        if isinstance(step, GenerateStep):
            steps += [*group_steps(group, silent), replace(step, silent=silent)]
            group = []
        else:
            group.append((literal, step))
    return steps + group_steps(group, silent)


def generators_first(late: Sequence[Literal], bound: set[str], rule: Rule) -> Iterator[Literal]:
    """Yield late literals in an order of evaluation, generators as early as possible."""
    waiting = list(late)
    while waiting:
        ready = [literal for literal in waiting if is_ready(literal, bound, rule)]
        is_generator = [isinstance(step_of(literal, bound, rule, first=False), GenerateStep) for literal in ready]
        literal = ready[is_generator.index(True) if any(is_generator) else 0]
        yield literal
        waiting.remove(literal)
        bound = bound | variable_names(literal)


def is_ready(literal: Literal, bound: set[str], rule: Rule) -> bool:
    """Return whether a literal can be evaluated with the bound variables."""
    step = step_of(literal, bound, rule, first=False)
    return isinstance(step, (BindStep, GenerateStep)) or variable_names(literal) <= bound


def group_steps(group: Group, silent: bool) -> list[Step]:
    """Return the steps of late literals without generators: one after another if that is exact, else together."""
    if silent or is_chain(group):
        return [quiet(step) if silent else step for _, step in group]
    conditions, values = inlined(group)
    if sum(1 for term in values.values() for _ in subterms(term)) > MAX_INLINED_TERMS:
        return [step for _, step in group]
    binds: list[Step] = [replace(step, silent=True) for _, step in group if isinstance(step, BindStep)]
    return [TogetherStep(tuple(conditions), tuple(values.values())), *binds]


def quiet(step: Step) -> Step:
    """Return a step that drops the rows that fail without an error."""
    return replace(step, silent=True) if isinstance(step, (BindStep, FilterStep, GenerateStep)) else step


def is_chain(group: Group) -> bool:
    """Return whether every literal that comes after one that can fail uses its value."""
    for position, (literal, step) in enumerate(group):
        values = {step.variable} if isinstance(step, BindStep) else set()
        for later, later_step in group[position + 1 :] if literal_can_fail(literal) else ():
            if not variable_names(later) & values:
                return False
            values |= {later_step.variable} if isinstance(later_step, BindStep) else set()
    return True


def inlined(group: Group) -> tuple[list[Comparison | Test], dict[str, Term]]:
    """Return the conditions of a group, and the terms of its variables, without the variables that it defines."""
    conditions: list[Comparison | Test] = []
    values: dict[str, Term] = {}

    def put(term: Term) -> Term:
        return values.get(term.name, term) if isinstance(term, VariableTerm) else term

    for literal, step in group:
        if isinstance(step, BindStep):
            values[step.variable] = map_term(step.term, put)
        else:
            condition = map_terms(literal, put)
            assert isinstance(condition, (Comparison, Test))
            conditions.append(condition)
    return conditions, values


def failing_terms(late: Sequence[Literal], bound: set[str], rule: Rule) -> tuple[Term, ...] | None:
    """Return the terms of late literals that can fail, in terms of variables bound before; None if a test can."""
    group = [(literal, step_of(literal, bound, rule, first=False)) for literal in late]
    if any(isinstance(step, GenerateStep) for _, step in group):
        return None
    conditions, values = inlined(group)
    if any(isinstance(condition, Test) and literal_can_fail(condition) for condition in conditions):
        return None
    compared = [term for part in conditions if isinstance(part, Comparison) for term in (part.left, part.right)]
    return tuple(term for term in (*values.values(), *compared) if not isinstance(term, VariableTerm))

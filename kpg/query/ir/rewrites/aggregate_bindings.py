"""Why the aggregates of a rule cannot be computed: the error for a variable that nothing binds before them.

p(x, z) :- x = sum y : { a(y), y < z }, z = sum y : { a(y), y < x }.     each sum needs the result of the other
p(x) :- x = count : { a(y), y < x }.                                     the count needs its own result
p(x, n) :- n = count : { a(x, _) }.                                      nothing binds x
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kpg.errors import NotStratified, ProgramError, UnsafeRule
from kpg.query.ir.body_variables import definitions
from kpg.query.ir.literals import Literal, aggregates
from kpg.query.ir.terms import AggregateTerm, VariableTerm
from kpg.query.source_text import failure

Keys = Callable[[AggregateTerm], list[VariableTerm]]


def unbound_keys(terms: list[AggregateTerm], literals: Iterable[Literal], bound: set[str], keys: Keys) -> ProgramError:
    """Return the error for a rule of which no aggregate has all its keys bound; `keys` gives those of an aggregate."""
    needs = {
        term: [
            other
            for key in keys(term)
            if key.name not in bound
            for literal in literals
            if any(variable.name == key.name for variable, _ in definitions(literal))
            for other in aggregates(literal)
        ]
        for term in terms
    }
    cycle = find_cycle(needs)
    if cycle:
        return depends_on_itself(cycle)
    term = next(term for term in terms if not needs[term])
    unbound = next(key for key in keys(term) if key.name not in bound)
    return failure(
        UnsafeRule,
        f"variable {unbound.written!r} of the {term.op} is not bound outside of it",
        unbound.at,
        hint="Use it in a positive atom beside the aggregate, or use another name inside the aggregate.",
    )


def find_cycle(needs: dict[AggregateTerm, list[AggregateTerm]]) -> list[AggregateTerm]:
    """Return aggregates of which each needs the next one, and the last one the first; empty if there are none."""
    for start in needs:
        path = [start]
        while following := needs.get(path[-1]):
            if following[0] in path:
                return path[path.index(following[0]) :]
            path.append(following[0])
    return []


def depends_on_itself(cycle: list[AggregateTerm]) -> NotStratified:
    """Return the error for aggregates that depend on each other's results."""
    first = min(cycle, key=lambda term: (term.at.line, term.at.column))
    what = f"the {first.op} depends on its own result"
    if len(cycle) > 1:
        others = [term for term in cycle if term is not first]
        what = f"the {first.op} and the {others[0].op} at {others[0].at} depend on each other's results"
    hint = "Bind the variables in the body of an aggregate before its result is needed."
    return failure(NotStratified, what, first.at, hint=hint)

"""Plan the delta queries of a rule: the order in which the changes of each atom meet the other atoms.

A pipeline begins with all variables of its atom bound. A source with all variables bound validates in the next step, so
atoms over the same variables, constants and a reverse atom e(b, a) are no special cases. Otherwise the next step
extends the tuples

    one variable at a time   by all atoms with only this variable unbound: the cheapest proposes, the others validate
                             (Hector)
    one atom at a time       by all its unbound variables: for Hector if no atom has a single one, otherwise always

The planner places a condition that cannot fail as soon as its variables are bound, and an equation as soon as an atom
needs the variable that it defines (a function proposes one value); an equation that can fail drops the tuple silently,
because the pipelines evaluate it on different tuples. Late literals are no part of a pipeline: they are evaluated once,
on the solutions of all pipelines. Ranges l <= x < u narrow the proposals for x.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kpg.query.binary_joins import BindStep, FilterStep, GenerateStep, step_of
from kpg.query.delta_pipelines import (
    DeltaPipeline,
    EqualNamesStep,
    ExtendStep,
    PipelineSource,
    PipelineStep,
    SourceLookup,
    read_by,
)
from kpg.query.ir.body_variables import is_computable, variable_names
from kpg.query.ir.literals import Atom, Comparison, Literal, Negation, Test
from kpg.query.ir.program import Rule
from kpg.query.ir.terms import ConstantTerm, VariableTerm
from kpg.query.late_steps import quiet

MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def pipelines_of(
    rule: Rule,
    body: Sequence[Literal],
    needed: frozenset[str],
    sources: Sequence[PipelineSource],
    *,
    hector: bool,
    order: tuple[str, ...] = (),
) -> list[DeltaPipeline]:
    """Return a pipeline for each source that may change. `needed` are the variables that are read after `body`."""
    changing = [source for source in sources if not source.static]
    return [PipelinePlanner(rule, body, needed, sources, source, hector, order).pipeline() for source in changing]


@dataclass(slots=True)
class PipelinePlanner:
    """Plans the steps of one pipeline."""

    rule: Rule
    body: Sequence[Literal]
    needed: frozenset[str]
    sources: Sequence[PipelineSource]
    source: PipelineSource
    hector: bool
    order: tuple[str, ...]
    bound: frozenset[str] = frozenset()
    waiting: list[PipelineSource] = field(default_factory=list)
    conditions: list[Literal] = field(default_factory=list)
    steps: list[PipelineStep] = field(default_factory=list)

    def pipeline(self) -> DeltaPipeline:
        """Plan all steps, from the source to the last condition."""
        self.bound = self.source.variables
        self.waiting = [source for source in self.sources if source is not self.source]
        self.conditions = [literal for literal in self.body if not isinstance(literal, (Atom, Negation))]
        self.steps += [EqualNamesStep(*pair) for pair in self.source.equal_names]
        while True:
            self._add_conditions(last=False)
            if not self.waiting:
                break
            if not self._validate():
                self._extend()
        self._add_conditions(last=True)
        assert not self.conditions, "a rule that is safe binds all its variables"
        head, *live = self._live()
        return DeltaPipeline(self.source, tuple(self.steps), tuple(live), head)

    def _add_conditions(self, last: bool) -> None:
        """Add the conditions that can be evaluated now; with `last`, all that are left."""
        needed = {name for source in self.waiting for name in source.variables}
        progress = True
        while progress:
            progress = False
            for literal in self.conditions:
                step = quiet(step_of(literal, set(self.bound), self.rule, first=False))
                if isinstance(step, BindStep):
                    ready = last or (step.variable in needed and is_computable(step.term, set(self.bound)))
                elif isinstance(step, GenerateStep):
                    ready = last or step.variable in needed
                else:
                    assert isinstance(step, FilterStep)
                    ready = variable_names(literal) <= self.bound and (last or cannot_fail(literal))
                if ready:
                    self.steps.append(step)
                    self.bound |= {step.variable} if isinstance(step, (BindStep, GenerateStep)) else frozenset()
                    self.conditions.remove(literal)
                    progress = True
                    break

    def _validate(self) -> bool:
        """Validate by all sources that are completely bound; return whether there were any."""
        bound = [source for source in self.waiting if not source.unbound(self.bound)]
        for source in bound:
            self.waiting.remove(source)
        if bound and self.hector:
            self.steps.append(ExtendStep(tuple(self._lookup(source) for source in bound), ()))
        elif bound:
            self.steps += [ExtendStep((self._lookup(source),), ()) for source in bound]
        return bool(bound)

    def _extend(self) -> None:
        """Extend by one variable, by all sources that lack only it; or else by all unbound variables of one atom."""
        chosen = self._next_variable() if self.hector else None
        positive = [source for source in self.waiting if not source.negative]
        if chosen is not None:
            extending = [
                source
                for source in self.waiting
                if source.unbound(self.bound) == {chosen} and not self._repeats_unbound(source)
            ]
            extending.sort(key=lambda source: source.negative)
            low, high = self._range(chosen)
            self.steps.append(ExtendStep(tuple(self._lookup(source) for source in extending), (chosen,), low, high))
        else:
            connected = [source for source in positive if source.variables & self.bound] or positive
            best = min(connected, key=self._preference)
            extending = [best]
            new = tuple(name for name in best.names if isinstance(name, str) and name in best.unbound(self.bound))
            self.steps.append(ExtendStep((self._lookup(best),), new))
        for source in extending:
            self.waiting.remove(source)
            fresh = [
                pair for pair in source.equal_names if source.variables >= set(pair) and not set(pair) <= self.bound
            ]
            already = [pair for pair in fresh if pair[0] in self.bound]
            self.bound |= source.variables
            self.steps += [EqualNamesStep(*pair) for pair in fresh if pair not in already]

    def _preference(self, source: PipelineSource) -> tuple[int, bool, int]:
        """Rank a source for extension: most bound columns first, then strict lookups, which may find no rows yet."""
        return len(source.unbound(self.bound)) - len(source.names), not self._is_strict(source), source.number

    def _is_strict(self, source: PipelineSource) -> bool:
        """Return whether changes of a source at the same time are left to its own pipeline."""
        return source.number > self.source.number

    def _repeats_unbound(self, source: PipelineSource) -> bool:
        """Return whether an unbound variable occurs more than once in a source."""
        unbound = source.unbound(self.bound)
        return any(first in unbound or second in unbound for first, second in source.equal_names)

    def _next_variable(self) -> str | None:
        """Return the variable that most connected sources can extend to, or the first such of the given order."""
        counts: dict[str, int] = {}
        reached: set[str] = set()
        for source in self.waiting:
            unbound = source.unbound(self.bound)
            if len(unbound) == 1 and not source.negative and not self._repeats_unbound(source):
                counts[min(unbound)] = counts.get(min(unbound), 0) + 1
                reached |= unbound if source.variables & self.bound else set()
        counts = {name: count for name, count in counts.items() if name in reached}
        if self.order:
            return next((name for name in self.order if name in counts), None)
        return max(counts, key=lambda name: counts[name], default=None)

    def _lookup(self, source: PipelineSource) -> SourceLookup:
        key: list[tuple[str | ConstantTerm, int]] = []
        stands_for = {second: first for first, second in source.equal_names}
        for column, name in enumerate(source.names):
            if isinstance(name, ConstantTerm):
                key.append((name, column))
            elif name is None:
                continue
            elif name in self.bound:
                key.append((name, column))
            elif stands_for.get(name) in self.bound:
                key.append((stands_for[name], column))
        return SourceLookup(source, tuple(key), strict=self._is_strict(source))

    def _range(self, name: str) -> tuple[str | None, str | None]:
        """Return bound variables that a variable is at least, and less than; the conditions themselves stay."""
        low = high = None
        if dict(self.rule.kinds).get(name) != "number":
            return None, None
        for op, left, right in both_directions(self.conditions):
            if left == name and right in self.bound:
                low = right if op in (">=", ">") and low is None else low
                high = right if op == "<" and high is None else high
        return low, high

    def _live(self) -> Iterator[frozenset[str]]:
        """Return the names that are read after the head and after each step."""
        needed = set(self.needed)
        live: list[frozenset[str]] = []
        for step in reversed(self.steps):
            live.append(frozenset(needed))
            needed |= read_by(step)
        live.append(frozenset(needed))
        return reversed(live)


def both_directions(conditions: Sequence[Literal]) -> Iterator[tuple[str, str, str]]:
    """Yield comparisons of two variables as (op, left, right), each in both directions."""
    for literal in conditions:
        if isinstance(literal, Comparison) and literal.op in MIRRORED:
            if isinstance(literal.left, VariableTerm) and isinstance(literal.right, VariableTerm):
                yield literal.op, literal.left.name, literal.right.name
                yield MIRRORED[literal.op], literal.right.name, literal.left.name


def cannot_fail(literal: Literal) -> bool:
    """Return whether a condition cannot fail: it compares variables and constants."""
    if isinstance(literal, Test):
        return False
    assert isinstance(literal, Comparison)
    return all(isinstance(term, (VariableTerm, ConstantTerm)) for term in (literal.left, literal.right))

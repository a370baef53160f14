"""The delta queries of a rule: in which order the changes of each atom meet the other atoms.

A pipeline begins with all variables of its atom bound. Whatever is bound completely only validates, at once: so
conflicts on the variables of the source, a constant or a reverse binding e(b, a), are no special case. Then either

    one variable at a time   by all atoms that lack just this one: the cheapest proposes, the others validate (Hector)
    one atom at a time       whatever it lacks, where no atom lacks a single variable, and in delta queries always

Conditions that cannot fail stand as early as their variables are bound, equations as soon as an atom needs what they
define (a function proposes one value), all else last, as late as in a plan of binary joins. Ranges l <= x < u narrow
what proposes x.
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
from kpg.query.ir.body_variables import is_ready, literals, uses
from kpg.query.ir.literals import Atom, Comparison, Literal, Negation, Test, variables
from kpg.query.ir.program import Rule
from kpg.query.ir.terms import ConstantTerm, VariableTerm

TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def pipelines_of(
    rule: Rule, sources: Sequence[PipelineSource], *, hector: bool, order: tuple[str, ...] = ()
) -> list[DeltaPipeline]:
    """A pipeline for each source that may change."""
    return [Planner(rule, sources, source, hector, order).pipeline() for source in sources if not source.static]


@dataclass(slots=True)
class Planner:
    """Puts together the steps of one pipeline."""

    rule: Rule
    sources: Sequence[PipelineSource]
    source: PipelineSource
    hector: bool
    order: tuple[str, ...]
    bound: frozenset[str] = frozenset()
    waiting: list[PipelineSource] = field(default_factory=list)
    conditions: list[Literal] = field(default_factory=list)
    steps: list[PipelineStep] = field(default_factory=list)

    def pipeline(self) -> DeltaPipeline:
        """All steps, from the source to the last condition."""
        self.bound = self.source.variables
        self.waiting = [each for each in self.sources if each is not self.source]
        self.conditions = [each for each in literals(self.rule) if not isinstance(each, (Atom, Negation))]
        self.steps += [EqualNamesStep(*pair) for pair in self.source.same]
        while True:
            self._conditions(last=False)
            if not self.waiting:
                break
            if not self._validate():
                self._extend()
        self._conditions(last=True)
        assert not self.conditions, "a rule that is safe binds all its variables"
        head, *live = self._live()
        return DeltaPipeline(self.source, tuple(self.steps), tuple(live), head)

    def _conditions(self, last: bool) -> None:
        """Take the conditions that may stand here; at the end all, in order."""
        wanted = {name for source in self.waiting for name in source.variables}
        progress = True
        while progress:
            progress = False
            for literal in self.conditions:
                step = step_of(literal, set(self.bound), self.rule, first=False)
                if isinstance(step, BindStep):
                    takes = last or (step.variable in wanted and is_ready(step.term, set(self.bound)))
                elif isinstance(step, GenerateStep):
                    takes = last or step.variable in wanted
                else:
                    assert isinstance(step, FilterStep)
                    takes = uses(literal) <= self.bound and (last or is_sure(literal))
                if takes:
                    self.steps.append(step)
                    self.bound |= {step.variable} if isinstance(step, (BindStep, GenerateStep)) else frozenset()
                    self.conditions.remove(literal)
                    progress = True
                    break

    def _validate(self) -> bool:
        """Let all sources that are bound validate."""
        found = [source for source in self.waiting if not source.lacks(self.bound)]
        for source in found:
            self.waiting.remove(source)
        if found and self.hector:
            self.steps.append(ExtendStep(tuple(self._look(source) for source in found), ()))
        elif found:
            self.steps += [ExtendStep((self._look(source),), ()) for source in found]
        return bool(found)

    def _extend(self) -> None:
        """One more variable by all that lack just this one; or else whatever one atom lacks."""
        chosen = self._next_variable() if self.hector else None
        positive = [source for source in self.waiting if not source.negative]
        if chosen is not None:
            by = [source for source in self.waiting if source.lacks(self.bound) == {chosen} and not self._twice(source)]
            by.sort(key=lambda source: source.negative)
            low, high = self._range(chosen)
            self.steps.append(ExtendStep(tuple(self._look(source) for source in by), (chosen,), low, high))
        else:
            meets = [source for source in positive if source.variables & self.bound] or positive
            best = min(meets, key=self._preference)
            by = [best]
            new = tuple(name for name in best.names if isinstance(name, str) and name in best.lacks(self.bound))
            self.steps.append(ExtendStep((self._look(best),), new))
        for source in by:
            self.waiting.remove(source)
            fresh = [pair for pair in source.same if source.variables >= set(pair) and not set(pair) <= self.bound]
            already = [pair for pair in fresh if pair[0] in self.bound]
            self.bound |= source.variables
            self.steps += [EqualNamesStep(*pair) for pair in fresh if pair not in already]

    def _preference(self, source: PipelineSource) -> tuple[int, bool, int]:
        """Of which most is known; then what came before, since that may be nothing where all comes at one time."""
        return len(source.lacks(self.bound)) - len(source.names), not self._strict(source), source.number

    def _strict(self, source: PipelineSource) -> bool:
        """Whether changes of a source at the same time are left to its own pipeline."""
        return source.number > self.source.number

    def _twice(self, source: PipelineSource) -> bool:
        """Whether what a source lacks stands in it more than once."""
        lacking = source.lacks(self.bound)
        return any(first in lacking or second in lacking for first, second in source.same)

    def _next_variable(self) -> str | None:
        """The variable that most sources can extend to, one of them from what is bound; in the given order, if any."""
        counts: dict[str, int] = {}
        reached: set[str] = set()
        for source in self.waiting:
            lacking = source.lacks(self.bound)
            if len(lacking) == 1 and not source.negative and not self._twice(source):
                counts[min(lacking)] = counts.get(min(lacking), 0) + 1
                reached |= lacking if source.variables & self.bound else set()
        counts = {name: count for name, count in counts.items() if name in reached}
        if self.order:
            return next((name for name in self.order if name in counts), None)
        return max(counts, key=lambda name: counts[name], default=None)

    def _look(self, source: PipelineSource) -> SourceLookup:
        key: list[tuple[str | ConstantTerm, int]] = []
        stands_for = {second: first for first, second in source.same}
        for column, name in enumerate(source.names):
            if isinstance(name, ConstantTerm):
                key.append((name, column))
            elif name is None:
                continue
            elif name in self.bound:
                key.append((name, column))
            elif stands_for.get(name) in self.bound:
                key.append((stands_for[name], column))
        return SourceLookup(source, tuple(key), strict=self._strict(source))

    def _range(self, name: str) -> tuple[str | None, str | None]:
        """Bound variables that a variable is not before, and is before; conditions that say so stay."""
        low = high = None
        if dict(self.rule.kinds).get(name) != "number":
            return None, None
        for op, left, right in both_ways(self.conditions):
            if left == name and right in self.bound:
                low = right if op in (">=", ">") and low is None else low
                high = right if op == "<" and high is None else high
        return low, high

    def _live(self) -> Iterator[frozenset[str]]:
        """What is read after the head and after each step."""
        needed = {variable.name for variable in variables(self.rule.head)}
        found: list[frozenset[str]] = []
        for step in reversed(self.steps):
            found.append(frozenset(needed))
            needed |= read_by(step)
        found.append(frozenset(needed))
        return reversed(found)


def both_ways(conditions: Sequence[Literal]) -> Iterator[tuple[str, str, str]]:
    """The comparisons of two variables as (op, left, right), as they are and the other way round."""
    for literal in conditions:
        if isinstance(literal, Comparison) and literal.op in TURNED:
            if isinstance(literal.left, VariableTerm) and isinstance(literal.right, VariableTerm):
                yield literal.op, literal.left.name, literal.right.name
                yield TURNED[literal.op], literal.right.name, literal.left.name


def is_sure(literal: Literal) -> bool:
    """Whether a condition cannot fail: it compares variables and constants."""
    if isinstance(literal, Test):
        return False
    assert isinstance(literal, Comparison)
    return all(isinstance(term, (VariableTerm, ConstantTerm)) for term in (literal.left, literal.right))

"""A rule as delta queries: one pipeline for each atom that may change, from its changes to the rule's solutions.

    t(a, b, c) :- e(a, b), e(b, c), e(c, a).
        changes of e(a, b)  |  extend to c by e(b, c), e(c, a)
        changes of e(b, c)  |  extend to a by e(c, a), e(a, b)
        changes of e(c, a)  |  extend to b by e(a, b), e(b, c)

A pipeline begins with all variables of its atom bound. Whatever is bound completely only validates, at once: so
conflicts on the variables of the source, a constant or a reverse binding e(b, a), are no special case. Then either

    one variable at a time   by all atoms that lack just this one: the cheapest proposes, the others validate (Hector)
    one atom at a time       whatever it lacks, where no atom lacks a single variable, and in delta queries always

Negations are atoms that only validate; their changes have pipelines, too, for what they take away. Conditions that
cannot fail stand as early as their variables are bound, equations as soon as an atom needs what they define (a function
proposes one value), all else last, as late as in a plan of binary joins. Ranges l <= x < u narrow what proposes x.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from kpg.query.ir.bodies import is_ready, literals, uses
from kpg.query.ir.literals import Atom, Comparison, Literal, Negation, Test, variables
from kpg.query.ir.program import Relation, Rule
from kpg.query.ir.show import show
from kpg.query.ir.terms import Constant, Term, Variable, Wildcard
from kpg.query.ir.terms import variables as variables_of_term
from kpg.query.plan import Bind, Generate, Where, step_of

TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Source:
    """An atom of a rule as something that changes and is looked up: `names` has a variable for each open column."""

    number: int  # its place in the order of the relations
    atom: Atom
    names: tuple[str | Constant | None, ...]  # for each column; a wildcard or second occurrence has a name of its own
    same: tuple[tuple[str, str], ...]  # pairs of names that must be equal
    negative: bool
    single: frozenset[str]  # names of which there is at most one, given all the others
    static: bool = False

    @property
    def variables(self) -> frozenset[str]:
        """The names of its columns."""
        return frozenset(name for name in self.names if isinstance(name, str))

    def lacks(self, bound: frozenset[str]) -> frozenset[str]:
        """The names that are not bound; where a variable is, so are its other occurrences."""
        return self.variables - bound - {second for first, second in self.same if first in bound}

    def __str__(self) -> str:
        return f"!{show(self.atom)}" if self.negative else show(self.atom)


@dataclass(frozen=True, slots=True)
class Look:
    """A source that is looked up: what is known of which columns, and whether its changes at the same time count."""

    source: Source
    key: tuple[tuple[str | Constant, int], ...]  # a variable or constant, and its column
    strict: bool

    def __str__(self) -> str:
        return str(self.source)


@dataclass(frozen=True, slots=True)
class Extend:
    """Tuples extended by some names (none: only validated), by one or several sources."""

    looks: tuple[Look, ...]
    new: tuple[str, ...]
    low: str | None = None
    high: str | None = None

    def __str__(self) -> str:
        by = ", ".join(map(str, self.looks))
        if not self.new:
            return f"validate by {by}"
        names = ", ".join(name for name in self.new if " " not in name) or "what is not read"
        bounds = [f"{self.low} <= {self.new[0]}"] if self.low else []
        bounds += [f"{self.new[0]} < {self.high}"] if self.high else []
        return f"extend to {names} by {by}" + (f", {' and '.join(bounds)}" if bounds else "")


@dataclass(frozen=True, slots=True)
class Same:
    """Keep tuples in which two names hold the same."""

    first: str
    second: str

    def __str__(self) -> str:
        return f"where {self.first} occurs twice"


PipelineStep: TypeAlias = Extend | Same | Where | Bind | Generate


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The steps from the changes of one source; `live[i]` is what is read after step i, `head` what is before all."""

    source: Source
    steps: tuple[PipelineStep, ...]
    live: tuple[frozenset[str], ...]
    head: frozenset[str]

    def __str__(self) -> str:
        return " | ".join([f"changes of {self.source}", *map(str, self.steps)])


def sources_of(rule: Rule, relations: dict[str, Relation], static: frozenset[str] = frozenset()) -> list[Source]:
    """The atoms of a rule, those that never change first, each with names for its columns."""
    found = [literal for literal in literals(rule) if isinstance(literal, (Atom, Negation))]
    atoms = [(each, False) if isinstance(each, Atom) else (each.formula, True) for each in found]
    made = []
    for place, (atom, negative) in enumerate(atoms):
        assert isinstance(atom, Atom)
        names, same = _names(atom, place, negative)
        single = relations[atom.relation].functional if atom.relation in relations else ()
        told = frozenset(name for name in (names[column] for column in single) if isinstance(name, str))
        made.append(Source(place, atom, names, same, negative, told, atom.relation in static and not negative))
    ordered = sorted(made, key=lambda source: not source.static)
    return [replace(source, number=number) for number, source in enumerate(ordered)]


def _names(
    atom: Atom, place: int, negative: bool
) -> tuple[tuple[str | Constant | None, ...], tuple[tuple[str, str], ...]]:
    names: list[str | Constant | None] = []
    same: list[tuple[str, str]] = []
    for column, term in enumerate(atom.arguments):
        match term:
            case Constant():
                names.append(term)
            case Variable() if term.name not in names:
                names.append(term.name)
            case Variable():
                names.append(f"{term.name} {place} {column}")
                same.append((term.name, f"{term.name} {place} {column}"))
            case _:
                assert isinstance(term, Wildcard)
                names.append(None if negative else f"_ {place} {column}")  # what does not hold of any value, is one
    return tuple(names), tuple(same)


def is_connected(sources: Sequence[Source]) -> bool:
    """Whether every source can be reached from every other by variables they share."""
    reached = sources[0].variables
    rest = list(sources[1:])
    while rest:
        found = [source for source in rest if source.variables & reached]
        if not found:
            return False
        for source in found:
            reached |= source.variables
            rest.remove(source)
    return True


def pipelines_of(rule: Rule, sources: Sequence[Source], *, hector: bool, order: tuple[str, ...] = ()) -> list[Pipeline]:
    """A pipeline for each source that may change."""
    return [
        Planner(rule, sources, source, hector, order).pipeline() for source in sources if not source.static
    ]


@dataclass(slots=True)
class Planner:
    """Puts together the steps of one pipeline."""

    rule: Rule
    sources: Sequence[Source]
    source: Source
    hector: bool
    order: tuple[str, ...]
    bound: frozenset[str] = frozenset()
    waiting: list[Source] = field(default_factory=list)
    conditions: list[Literal] = field(default_factory=list)
    steps: list[PipelineStep] = field(default_factory=list)

    def pipeline(self) -> Pipeline:
        """All steps, from the source to the last condition."""
        self.bound = self.source.variables
        self.waiting = [each for each in self.sources if each is not self.source]
        self.conditions = [each for each in literals(self.rule) if not isinstance(each, (Atom, Negation))]
        self.steps += [Same(*pair) for pair in self.source.same]
        while True:
            self._conditions(last=False)
            if not self.waiting:
                break
            if not self._validate():
                self._extend()
        self._conditions(last=True)
        assert not self.conditions, "a rule that is safe binds all its variables"
        head, *live = self._live()
        return Pipeline(self.source, tuple(self.steps), tuple(live), head)

    def _conditions(self, last: bool) -> None:
        """Take the conditions that may stand here; at the end all, in order."""
        wanted = {name for source in self.waiting for name in source.variables}
        progress = True
        while progress:
            progress = False
            for literal in self.conditions:
                step = step_of(literal, set(self.bound), self.rule, first=False)
                if isinstance(step, Bind):
                    takes = last or (step.variable in wanted and is_ready(step.term, set(self.bound)))
                elif isinstance(step, Generate):
                    takes = last or step.variable in wanted
                else:
                    assert isinstance(step, Where)
                    takes = uses(literal) <= self.bound and (last or is_sure(literal))
                if takes:
                    self.steps.append(step)
                    self.bound |= {step.variable} if isinstance(step, (Bind, Generate)) else frozenset()
                    self.conditions.remove(literal)
                    progress = True
                    break

    def _validate(self) -> bool:
        """Let all sources that are bound validate."""
        found = [source for source in self.waiting if not source.lacks(self.bound)]
        for source in found:
            self.waiting.remove(source)
        if found and self.hector:
            self.steps.append(Extend(tuple(self._look(source) for source in found), ()))
        elif found:
            self.steps += [Extend((self._look(source),), ()) for source in found]
        return bool(found)

    def _extend(self) -> None:
        """One more variable by all that lack just this one; or else whatever one atom lacks."""
        chosen = self._next_variable() if self.hector else None
        positive = [source for source in self.waiting if not source.negative]
        if chosen is not None:
            by = [source for source in self.waiting if source.lacks(self.bound) == {chosen} and not self._twice(source)]
            by.sort(key=lambda source: source.negative)
            low, high = self._range(chosen)
            self.steps.append(Extend(tuple(self._look(source) for source in by), (chosen,), low, high))
        else:
            meets = [source for source in positive if source.variables & self.bound] or positive
            best = min(meets, key=self._preference)
            by = [best]
            new = tuple(name for name in best.names if isinstance(name, str) and name in best.lacks(self.bound))
            self.steps.append(Extend((self._look(best),), new))
        for source in by:
            self.waiting.remove(source)
            fresh = [pair for pair in source.same if source.variables >= set(pair) and not set(pair) <= self.bound]
            already = [pair for pair in fresh if pair[0] in self.bound]
            self.bound |= source.variables
            self.steps += [Same(*pair) for pair in fresh if pair not in already]

    def _preference(self, source: Source) -> tuple[int, bool, int]:
        """Of which most is known; then what came before, since that may be nothing where all comes at one time."""
        return len(source.lacks(self.bound)) - len(source.names), not self._strict(source), source.number

    def _strict(self, source: Source) -> bool:
        """Whether changes of a source at the same time are left to its own pipeline."""
        return source.number > self.source.number

    def _twice(self, source: Source) -> bool:
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

    def _look(self, source: Source) -> Look:
        key: list[tuple[str | Constant, int]] = []
        stands_for = {second: first for first, second in source.same}
        for column, name in enumerate(source.names):
            if isinstance(name, Constant):
                key.append((name, column))
            elif name is None:
                continue
            elif name in self.bound:
                key.append((name, column))
            elif stands_for.get(name) in self.bound:
                key.append((stands_for[name], column))
        return Look(source, tuple(key), strict=self._strict(source))

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
            if isinstance(literal.left, Variable) and isinstance(literal.right, Variable):
                yield literal.op, literal.left.name, literal.right.name
                yield TURNED[literal.op], literal.right.name, literal.left.name


def read_by(step: PipelineStep) -> set[str]:
    """The variables that a step reads."""
    match step:
        case Extend():
            named = {name for look in step.looks for name, _ in look.key if isinstance(name, str)}
            return named | {name for name in (step.low, step.high) if name is not None}
        case Same():
            return {step.first, step.second}
        case Where():
            return uses(step.condition)
        case Bind():
            return _variables_of(step.term)
        case Generate():
            return {name for term in step.call.arguments for name in _variables_of(term)}
    raise AssertionError(step)


def _variables_of(term: Term) -> set[str]:
    return {variable.name for variable in variables_of_term(term)}


def is_sure(literal: Literal) -> bool:
    """Whether a condition cannot fail: it compares variables and constants."""
    if isinstance(literal, Test):
        return False
    assert isinstance(literal, Comparison)
    return all(isinstance(term, (Variable, Constant)) for term in (literal.left, literal.right))

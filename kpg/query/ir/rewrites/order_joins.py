"""Order the literals of each body so that they can be evaluated from left to right.

The first atom is one with a constant, else the first as written. Each next atom is the one with the most bound
arguments, the first as written among equals; this avoids products of unrelated atoms where possible. Comparisons,
equations and negations follow the literal that binds their last variable directly, so that rows are dropped as early
as possible. Literals that can fail come after all others that are ready. An atom with a variable that such an equation
defines waits for the equation.

The cost is linear in the size of a body, times a logarithm, if no literal can fail. Each equation that can fail adds a
pass over the body.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from heapq import heappop, heappush

from kpg.query.ir.body_variables import bound_by, definitions, is_computable, literals, variable_names
from kpg.query.ir.fallible_terms import literal_can_fail
from kpg.query.ir.literals import Atom, Comparison, Conjunction, Literal, Negation
from kpg.query.ir.program import Program, Rule
from kpg.query.ir.terms import AggregateTerm, ConstantTerm, VariableTerm, subterms
from kpg.query.ir.terms import variables as variables_of_term


def order_joins(program: Program) -> Program:
    """Return the program with ordered bodies."""
    return program.with_rules(tuple(replace(rule, body=ordered_body(rule)) for rule in program.rules))


def ordered_body(rule: Rule) -> Conjunction:
    """Return the body of one rule in order."""
    return Conjunction(tuple(in_order(literals(rule))), rule.body.at)


def in_order(body: Iterable[Literal], start: frozenset[str] = frozenset()) -> list[Literal]:
    """Return literals in order; atoms with variables of `start` come first."""
    return BodyOrder(tuple(body), start).literals()


def ordered_behind(body: Iterable[Literal], bound: Iterable[str]) -> list[Literal]:
    """Return literals in the order in which they follow an atom that has bound some variables.

    Here atoms do not wait for equations that can fail.
    """
    order = BodyOrder(tuple(body), frozenset())
    order.atoms.any_placed = True
    order.atoms.unblock()
    order.bind(bound)
    return order.literals()


class BodyOrder:
    """The order of one body. Literals are numbered as written; each bound variable updates the literals that use it."""

    def __init__(self, body: Sequence[Literal], start: frozenset[str]) -> None:
        self.body = body
        self.start = start
        self.bound: set[str] = set()
        self.placed = [False] * len(body)
        self.conditions = ReadyConditions(body)
        self.atoms = RankedAtoms(body)
        self._first_waiting = 0

    def literals(self) -> list[Literal]:
        """Return all literals in order."""
        ordered: list[Literal] = []
        while len(ordered) < len(self.body):
            number = self._next()
            self.placed[number] = True
            literal = self.body[number]
            ordered.append(literal)
            if isinstance(literal, Atom):
                self.atoms.any_placed = True
            else:
                self.atoms.release(number)
            self.bind(bound_by([literal], self.bound) - self.bound)
        return ordered

    def bind(self, names: Iterable[str]) -> None:
        """Note that variables are bound."""
        for name in names:
            self.bound.add(name)
            self.conditions.bind(name)
            self.atoms.bind(name)

    def _next(self) -> int:
        """Return the number of the next literal."""
        number = self.conditions.next(self.placed) if self.bound or self.atoms.any_placed else None
        if number is None:
            number = self.atoms.next(self.placed, self.start - self.bound, self.start)
        if number is None:
            number = self.conditions.next(self.placed)
        return self._first() if number is None else number

    def _first(self) -> int:
        """Return the first literal that is not placed."""
        while self.placed[self._first_waiting]:
            self._first_waiting += 1
        return self._first_waiting


class ReadyConditions:
    """The literals except atoms that can be evaluated with the bound variables: equations first, negations last."""

    def __init__(self, body: Sequence[Literal]) -> None:
        self._ready: list[tuple[bool, bool, bool, int]] = []  # a heap
        self._ranks: dict[int, tuple[bool, bool, bool, int]] = {}
        self._lacking: list[tuple[int, int]] = []  # (literal, number of variables missing), one per way to evaluate it
        self._uses: dict[str, list[int]] = {}  # by variable: positions in `_lacking`
        for number, literal in enumerate(body):
            if not isinstance(literal, Atom):
                fails, negates = literal_can_fail(literal), isinstance(literal, Negation)
                self._ranks[number] = (fails, negates, not is_equation(literal), number)
                for names in ways_to_evaluate(literal):
                    self._add_way(number, names)

    def _add_way(self, number: int, names: set[str]) -> None:
        for name in names:
            self._uses.setdefault(name, []).append(len(self._lacking))
        self._lacking.append((number, len(names)))
        if not names:
            heappush(self._ready, self._ranks[number])

    def bind(self, name: str) -> None:
        """Note that a variable is bound."""
        for way in self._uses.pop(name, ()):
            number, lacking = self._lacking[way]
            self._lacking[way] = (number, lacking - 1)
            if lacking == 1:
                heappush(self._ready, self._ranks[number])

    def next(self, placed: list[bool]) -> int | None:
        """Return the next literal that can be evaluated, if there is one."""
        while self._ready and placed[self._ready[0][-1]]:
            heappop(self._ready)
        return self._ready[0][-1] if self._ready else None


def is_equation(literal: Literal) -> bool:
    """Return whether a literal is an equation."""
    return isinstance(literal, Comparison) and literal.op == "="


def ways_to_evaluate(literal: Literal) -> list[set[str]]:
    """Return the sets of variables from which a literal can be evaluated: all, or those of one side of an equation."""
    ways = [variable_names(literal)]
    for _, term in definitions(literal):
        if not any(isinstance(part, AggregateTerm) for part in subterms(term)):
            ways.append({variable.name for variable in variables_of_term(term)})
    return ways


class RankedAtoms:
    """The atoms of a body, by the number of their bound arguments.

    An atom is blocked while an equation that can fail still has to define one of its variables. It then comes last.
    """

    def __init__(self, body: Sequence[Literal]) -> None:
        self.any_placed = False
        self._body = body
        self._names = {
            number: variable_names(literal) for number, literal in enumerate(body) if isinstance(literal, Atom)
        }
        self._uses: dict[str, list[int]] = {}
        for number, names in self._names.items():
            for name in names:
                self._uses.setdefault(name, []).append(number)
        self._ranks = {number: boundness(body[number], set()) for number in self._names}  # type: ignore[arg-type]
        self._bound: set[str] = set()
        self._computed = computed_variables(body)  # by equation, while it is not placed
        self._blocking: dict[str, int] = {}
        for name in self._computed.values():
            self._blocking[name] = self._blocking.get(name, 0) + 1
        self._heap: list[tuple[tuple[int, int, int], int]] = []
        for number in self._names:
            self._push(number)

    def _push(self, number: int) -> None:
        whole, joined, fixed = self._ranks[number]
        heappush(self._heap, ((-whole, -joined, -fixed), number))

    def bind(self, name: str) -> None:
        """Note that a variable is bound."""
        self._bound.add(name)
        self._blocking.pop(name, None)
        for number in self._uses.get(name, ()):
            self._ranks[number] = boundness(self._body[number], self._bound)  # type: ignore[arg-type]
            self._push(number)

    def unblock(self) -> None:
        """Let no atom wait for an equation."""
        self._blocking.clear()

    def release(self, number: int) -> None:
        """Note that a literal is placed: its equation blocks no atom any more."""
        name = self._computed.pop(number, None)
        if name is not None and name in self._blocking:
            self._blocking[name] -= 1
            if not self._blocking[name]:
                del self._blocking[name]

    def next(self, placed: list[bool], wanted: frozenset[str], start: frozenset[str]) -> int | None:
        """Return the next atom; `wanted` are the variables of `start` that are not bound."""
        if self._blocking or wanted or not self.any_placed:
            return self._search(placed, wanted, start)
        while self._heap:
            (whole, joined, fixed), number = self._heap[0]
            if not placed[number] and (-whole, -joined, -fixed) == self._ranks[number]:
                return number
            heappop(self._heap)  # placed, or ranked higher since
        return None

    def _search(self, placed: list[bool], wanted: frozenset[str], start: frozenset[str]) -> int | None:
        """Return the next atom by a search through all of them."""
        waiting = [number for number in self._names if not placed[number]]
        waiting = [number for number in waiting if self._blocking.keys().isdisjoint(self._names[number])] or waiting
        started = [number for number in waiting if not wanted.isdisjoint(self._names[number])]
        if started:
            return max(started, key=lambda number: (self._ranks[number], len(self._names[number] & start)))
        if not self.any_placed:
            return max(waiting, key=lambda number: has_constant(self._body[number]), default=None)
        return max(waiting, key=lambda number: self._ranks[number], default=None)


def has_constant(literal: Literal) -> bool:
    """Return whether an argument of an atom is a constant."""
    return isinstance(literal, Atom) and any(isinstance(term, ConstantTerm) for term in literal.arguments)


def computed_variables(body: Sequence[Literal]) -> dict[int, str]:
    """Return the variables that equations define, of equations that can fail and need no atom with the variable.

    Variables that no atom has are left out: they block none. So a long chain of equations takes linear time.
    """
    computed: dict[int, str] = {}
    names: list[set[str]] = []
    in_atoms = {name for literal in body if isinstance(literal, Atom) for name in variable_names(literal)}
    for number, literal in enumerate(body):
        if isinstance(literal, Comparison) and literal_can_fail(literal):
            for variable, term in definitions(literal):
                if variable.name not in in_atoms:
                    continue
                names = names or [variable_names(other) for other in body]
                others = (other for other, used in zip(body, names, strict=True) if variable.name not in used)
                if is_computable(term, bound_by(others)):
                    computed[number] = variable.name
                    break
    return computed


def boundness(atom: Atom, bound: set[str]) -> tuple[bool, bool, int]:
    """Rank an atom by its bound arguments: whether all, whether any variable, how many."""
    arguments = [term for term in atom.arguments if isinstance(term, (VariableTerm, ConstantTerm))]
    fixed = [term for term in arguments if isinstance(term, ConstantTerm) or term.name in bound]
    joined = [term for term in fixed if isinstance(term, VariableTerm)]
    return len(fixed) == len(atom.arguments) and bool(joined), bool(joined), len(fixed)

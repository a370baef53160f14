"""Sideways information passing: the order of a body's literals, and the variables bound before each of them.

    SidewaysPassing(start)     start: the atom of the magic set, or None if all rows of the head are needed

`passable(inside)` are the variables that demand may pass on at this point: those connected with the start or with a
constant. A variable that only an unrelated atom binds is not among them, because passing it on would demand
everything. Computed values are never passed into the recursion they come from: the demand might not terminate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from kpg.query.ir.body_variables import bound_by, definitions, is_computable, variable_names
from kpg.query.ir.literals import Atom, Comparison, Literal, Negation, variables
from kpg.query.ir.program import PARAMETER
from kpg.query.ir.rewrites.order_joins import ordered_behind
from kpg.query.ir.terms import CallTerm, ConstantTerm, Term, VariableTerm, subterms


def sideways_order(body: Iterable[Literal], start: Atom) -> list[Literal]:
    """Order the literals of a body behind its start: each as early as possible, atoms with most bound terms first."""
    return ordered_behind(body, bound_by([start]))


def parameters_first(body: Iterable[Literal]) -> list[Literal]:
    """Return a body unchanged, or with the query's parameters first if it has any."""
    body = list(body)
    for literal in body:
        if isinstance(literal, Atom) and literal.relation.startswith(PARAMETER):
            return [literal, *sideways_order([other for other in body if other is not literal], literal)]
    return body


def computed_relations_last(body: Iterable[Literal], is_computed: Callable[[str], bool]) -> list[Literal]:
    """Return a body that starts with an atom with a constant, else with one that is not computed on demand."""
    body = list(body)
    atoms = [literal for literal in body if isinstance(literal, Atom)]
    if not atoms:
        return body
    fixed = [atom for atom in atoms if any(isinstance(term, ConstantTerm) for term in atom.arguments)]
    given = [atom for atom in atoms if not is_computed(atom.relation)]
    first = (*fixed, *given, *atoms)[0]
    return [first, *sideways_order([literal for literal in body if literal is not first], first)]


def is_bound(term: Term, bound: set[str]) -> bool:
    """Return whether a term is a constant or a bound variable."""
    return isinstance(term, ConstantTerm) or (isinstance(term, VariableTerm) and term.name in bound)


@dataclass(slots=True)
class SidewaysPassing:
    """The bound variables while the literals of a body are visited one after another."""

    start: Atom | None
    bound: set[str] = field(default_factory=set)
    computed: set[str] = field(default_factory=set)
    prefix: list[Literal] = field(default_factory=list)
    starts_anywhere: bool = False  # the first atom is a start of its own

    def __post_init__(self) -> None:
        if self.start is not None:
            self.bound = bound_by([self.start])
            self.prefix = [self.start]

    def passable(self, inside: bool) -> set[str]:
        """Return the variables that may be passed on; `inside` the rule's own recursion, no computed ones."""
        return self.bound - self.computed if inside else self.bound

    def visit(self, literal: Literal, rewritten: Literal) -> None:
        """Add the variables that a literal binds; `rewritten` takes its place in the rules for demand."""
        match literal:
            case Atom():
                if self.is_connected(literal):
                    self.bound |= {variable.name for variable in variables(literal)}
                    self.prefix.append(rewritten)
            case Negation():
                return  # demanding more than necessary is sound, and keeps the strata separate
            case Comparison() if literal.op == "=" and self.define(literal):
                self.prefix.append(rewritten)
            case _ if variable_names(literal) <= self.bound:
                self.prefix.append(rewritten)

    def is_connected(self, atom: Atom) -> bool:
        """Return whether an atom has a bound term, or holds the query's parameters."""
        if atom.relation.startswith(PARAMETER) or (self.starts_anywhere and not self.prefix):
            return True
        return any(is_bound(term, self.bound) for term in atom.arguments)

    def define(self, equation: Comparison) -> bool:
        """Bind the variable that an equation defines, if its other side is bound; return whether it did."""
        for variable, term in definitions(equation):
            if variable.name not in self.bound and is_computable(term, self.bound):
                self.bound.add(variable.name)
                is_computed = any(isinstance(part, CallTerm) for part in subterms(term))
                if is_computed or variable_names(equation) & self.computed:
                    self.computed.add(variable.name)
                return True
        return False

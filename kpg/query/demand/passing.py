"""Sideways information passing: in which order the literals of a body are asked, and what is known when each is.

    Passing(rule, start)     start: the atom of what is demanded, or None if all rows of the head are wanted

`known(relation)` are the variables that demand may pass on at this point: those that hang together with the start or
with a constant. A variable that only an unrelated atom binds is not among them, since passing it on would demand
everything. Values that are computed are never passed into the recursion they come from: it might not end.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kpg.query.ir.body_variables import bound_by, definitions, is_ready, uses
from kpg.query.ir.literals import Atom, Comparison, Literal, Negation, variables
from kpg.query.ir.program import PARAMETER
from kpg.query.ir.rewrites.order_joins import known as how_known
from kpg.query.ir.rewrites.order_joins import next_ready
from kpg.query.ir.terms import CallTerm, ConstantTerm, Term, VariableTerm, subterms


def in_order(body: Iterable[Literal], start: Atom) -> list[Literal]:
    """The literals of a body behind the atom it starts with: each as soon as it can be, what is best known first."""
    waiting, done = list(body), list[Literal]()
    bound = bound_by([start])
    while waiting:
        literal = next_ready(waiting, bound)
        if literal is None:
            atoms = [each for each in waiting if isinstance(each, Atom)]
            literal = max(atoms, key=lambda atom: how_known(atom, bound)) if atoms else waiting[0]
        waiting.remove(literal)
        done.append(literal)
        bound = bound_by([literal], bound)
    return done


def given_first(body: Iterable[Literal]) -> list[Literal]:
    """A body as it is, unless it has what a query was given: then that comes first."""
    body = list(body)
    for literal in body:
        if isinstance(literal, Atom) and literal.relation.startswith(PARAMETER):
            return [literal, *in_order([each for each in body if each is not literal], literal)]
    return body


def is_known(term: Term, known: set[str]) -> bool:
    """Whether a term has a value that can be passed on."""
    return isinstance(term, ConstantTerm) or (isinstance(term, VariableTerm) and term.name in known)


@dataclass(slots=True)
class Passing:
    """What is known while the literals of a body are asked one after another."""

    start: Atom | None
    given: set[str] = field(default_factory=set)
    computed: set[str] = field(default_factory=set)
    prefix: list[Literal] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.start is not None:
            self.given = bound_by([self.start])
            self.prefix = [self.start]

    def known(self, inside: bool) -> set[str]:
        """The variables that may be passed on; `inside` the recursion, no computed ones."""
        return self.given - self.computed if inside else self.given

    def ask(self, literal: Literal, rewritten: Literal) -> None:
        """Go past a literal, that became another."""
        match literal:
            case Atom():
                if self.hangs_together(literal):
                    self.given |= {variable.name for variable in variables(literal)}
                    self.prefix.append(rewritten)
            case Negation():
                return  # demanding more than is needed is sound, and keeps strata apart
            case Comparison() if literal.op == "=" and self.define(literal):
                self.prefix.append(rewritten)
            case _ if uses(literal) <= self.given:
                self.prefix.append(rewritten)

    def hangs_together(self, atom: Atom) -> bool:
        """Whether an atom has something known, or is what a query was given."""
        if atom.relation.startswith(PARAMETER):
            return True
        return any(is_known(term, self.given) for term in atom.arguments)

    def define(self, equation: Comparison) -> bool:
        """Whether an equation says what a new variable is."""
        for variable, term in definitions(equation):
            if variable.name not in self.given and is_ready(term, self.given):
                self.given.add(variable.name)
                if any(isinstance(each, CallTerm) for each in subterms(term)) or uses(equation) & self.computed:
                    self.computed.add(variable.name)
                return True
        return False

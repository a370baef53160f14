"""Atoms typed in the shell: facts to insert and delete, and goals to ask.

edge(1, "a")          a fact: all arguments are constants
path(1, x)            a goal: constants bind columns, variables and _ leave them free
path(x, y), y > 3     a body: the shell makes a rule of it and asks for that

The text is parsed by `kpg.query.datalog.goal_parser`, so atoms have the syntax of programs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kpg.errors import ParseError
from kpg.query.datalog import goal_parser
from kpg.query.ir import literals
from kpg.query.ir.constructors import is_known_record
from kpg.query.ir.show import show_term
from kpg.query.ir.terms import CallTerm, ConstantTerm, Term, VariableTerm, WildcardTerm
from kpg.query.source_text import failure


@dataclass(frozen=True, slots=True)
class Free:
    """An argument that is not a constant: a variable, or _."""

    name: str


@dataclass(frozen=True, slots=True)
class Goal:
    """One atom, with the values of its constants."""

    name: str
    arguments: tuple[Any, ...]

    @property
    def is_fact(self) -> bool:
        """Whether all arguments are constants."""
        return not any(isinstance(argument, Free) for argument in self.arguments)

    @property
    def is_plain(self) -> bool:
        """Whether no variable occurs twice. Then binding columns to constants expresses the whole goal."""
        names = [argument.name for argument in self.arguments if isinstance(argument, Free) and argument.name != "_"]
        return len(names) == len(set(names))


def parse_atoms(text: str) -> list[Goal]:
    """Parse atoms with commas in between; a name alone is an atom without arguments."""
    return [Goal(atom.relation, tuple(map(argument, atom.arguments))) for atom in goal_parser.parse_atoms(text)]


def argument(term: Term) -> Any:
    """Return the value of a constant, or `Free` for a variable."""
    match term:
        case ConstantTerm(value):
            return value
        case CallTerm() if is_known_record(term):
            return show_term(term)
        case VariableTerm(name):
            return Free(name)
        case WildcardTerm():
            return Free("_")
    raise failure(ParseError, "an argument of a goal is a constant, a variable or _", term.at)


def is_body(text: str) -> bool:
    """Return whether a question needs a rule of its own: it is not one plain atom."""
    try:
        atoms = parse_atoms(text)
    except ParseError:
        return True
    return len(atoms) != 1 or not atoms[0].is_plain


def variables(text: str) -> list[str]:
    """Return the variables of a body in order of occurrence. Variables local to an aggregate are not among them."""
    names = (variable.name for variable in literals.variables(goal_parser.parse_body(text)))
    return [name for name in dict.fromkeys(names) if not name.startswith("_")]


def rule_for(name: str, body: str) -> str:
    """Return a rule with the given body; its columns are the variables of the body, in order."""
    names = variables(body)
    if not names:
        raise ParseError("the query has no variable", hint="For example path(1, x), x > 3?")
    return f"{name}({', '.join(names)}) :- {body}."

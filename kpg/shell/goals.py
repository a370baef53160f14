"""Atoms as people type them: facts to put and take, and goals to ask.

edge(1, "a")          a fact: all constants
path(1, x)            a goal: constants fix columns, variables and _ leave them free
path(x, y), y > 3     a body: asked through a rule made for it
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from kpg.errors import ParseError
from kpg.shell.statements import NAME

TOKEN = re.compile(
    r"""\s*(?:(?P<text>"(?:\\.|[^"\\])*")|(?P<float>-?\d+\.\d+(?:[eE][+-]?\d+)?)|(?P<int>-?\d+)"""
    r"""|(?P<name>:?[A-Za-z_][\w./-]*)|(?P<sign>[(),]))"""
)
WORDS: Final = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Free:
    """An argument that is not a constant: a variable, or _."""

    name: str


@dataclass(frozen=True, slots=True)
class Goal:
    """One atom."""

    name: str
    arguments: tuple[Any, ...]

    @property
    def is_fact(self) -> bool:
        """Whether all arguments are constants."""
        return not any(isinstance(each, Free) for each in self.arguments)

    @property
    def is_plain(self) -> bool:
        """Whether no variable stands twice, so that fixing columns says it all."""
        names = [each.name for each in self.arguments if isinstance(each, Free) and each.name != "_"]
        return len(names) == len(set(names))


def parse_atoms(text: str) -> list[Goal]:
    """Atoms with commas in between; a name alone has no arguments."""
    tokens, place = [], 0
    while text[place:].strip():
        found = TOKEN.match(text, place)
        if found is None:
            raise ParseError(f"found {text[place:].strip()[:20]!r}, expected an atom", hint='For example edge(1, "a").')
        tokens.append((found.lastgroup or "", found[found.lastgroup or 0]))
        place = found.end()
    goals = []
    while tokens:
        goals.append(parse_atom(tokens))
        if tokens:
            expect(tokens, ",")
    return goals


def parse_atom(tokens: list[tuple[str, str]]) -> Goal:
    """One atom from the front of the tokens."""
    kind, name = tokens.pop(0)
    if kind != "name" or not NAME.fullmatch(name):
        raise ParseError(f"found {name!r}, expected the name of a relation")
    if not tokens or tokens[0][1] != "(":
        return Goal(name, ())
    tokens.pop(0)
    arguments: list[Any] = []
    while tokens and tokens[0][1] != ")":
        if arguments:
            expect(tokens, ",")
        if not tokens or tokens[0][0] == "sign":
            raise ParseError(f"an argument of {name} is missing")
        arguments.append(constant(*tokens.pop(0)))
    expect(tokens, ")")
    return Goal(name, tuple(arguments))


def expect(tokens: list[tuple[str, str]], sign: str) -> None:
    """Take a sign from the front."""
    if not tokens or tokens.pop(0)[1] != sign:
        raise ParseError(f"expected {sign!r}")


def constant(kind: str, text: str) -> Any:
    """The value of an argument, or a free one."""
    if kind == "text":
        try:
            return json.loads(text)
        except ValueError:
            return text[1:-1]
    if kind == "float":
        return float(text)
    if kind == "int":
        return int(text)
    return WORDS.get(text, Free(text))


def is_body(text: str) -> bool:
    """Whether a question is more than one plain atom."""
    try:
        atoms = parse_atoms(text)
    except ParseError:
        return True
    return len(atoms) != 1 or not atoms[0].is_plain


def variables(text: str) -> list[str]:
    """The variables of a body in the order they come: names that are not applied and not within texts."""
    plain = re.sub(r'"(?:\\.|[^"\\])*"', '""', text)
    found = re.findall(r"(?<![\w:./])([A-Za-z][\w]*)(?![\w./]*\s*\()", plain)
    return list(dict.fromkeys(name for name in found if name not in WORDS))

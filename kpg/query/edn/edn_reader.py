"""EDN text as forms, each with its place.

    [:find ?x :where [?x :person/name "Ann"]]   ->   a vector of a keyword, a symbol, a keyword and a vector

Commas are white space, `;` begins a comment, `#_` drops the form behind it. Maps, sets and tagged values are read, so
that they can be refused where they stand.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from kpg.errors import ParseError
from kpg.query.source_text import Position, SourceText, failure

OPEN = {"(": ("list", ")"), "[": ("vector", "]"), "{": ("map", "}"), "#{": ("set", "}")}
TOKEN = re.compile(
    r"""
      (?P<space>[\s,]+|;[^\n]*)
    | (?P<discard>\#_)
    | (?P<open>\#\{|[(\[{])
    | (?P<close>[)\]}])
    | (?P<string>"(?:[^"\\]|\\.)*")
    | (?P<float>[-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?M?(?<![0-9])(?=[\s,()\[\]{}";]|$)
               |[-+]?[0-9]+(?:\.[0-9]+(?:[eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+)M?(?=[\s,()\[\]{}";]|$))
    | (?P<number>[-+]?[0-9]+N?(?=[\s,()\[\]{}";]|$))
    | (?P<keyword>:[^\s,()\[\]{}";]+)
    | (?P<tag>\#[A-Za-z][^\s,()\[\]{}";]*)
    | (?P<character>\\[^\s,()\[\]{}";]+)
    | (?P<symbol>[^\s,()\[\]{}";:#\\0-9][^\s,()\[\]{}";]*)
    """,
    re.VERBOSE,
)
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}
DEEPEST = 100


@dataclass(frozen=True, slots=True)
class Form:
    """A form: its sort, what it holds, and where it stands."""

    sort: str  # list, vector, map, set, string, number, float, keyword, symbol, bool, nil
    value: Any
    at: Position

    def is_symbol(self, *names: str) -> bool:
        """Whether this is one of some symbols."""
        return self.sort == "symbol" and self.value in names


class EdnReader:
    """Walks over a text."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.offset = 0

    def all(self) -> list[Form]:
        """Every form of the text."""
        forms: list[Form] = []
        while (found := self.form(0)) is not None:
            if found.sort == "close":
                raise failure(ParseError, f"{found.value!r} closes nothing", found.at)
            forms.append(found)
        return forms

    def at(self, length: int) -> Position:
        """The place where the reader stands."""
        before = self.source.text[: self.offset]
        return Position(self.source, before.count("\n") + 1, self.offset - (before.rfind("\n") + 1) + 1, length)

    def form(self, depth: int) -> Form | None:
        """The next form, a closing bracket as a form of its own, or None at the end."""
        while self.offset < len(self.source.text):
            found = TOKEN.match(self.source.text, self.offset)
            if found is None:
                character = self.source.text[self.offset]
                what = "a string is not closed" if character == '"' else f"unexpected character {character!r}"
                raise failure(ParseError, what, self.at(1))
            sort, text, at = str(found.lastgroup), found[0], self.at(len(found[0]))
            self.offset = found.end()
            if sort == "discard":
                self.form(depth)
            elif sort == "open":
                return self.collection(text, at, depth + 1)
            elif sort == "close":
                return Form("close", text, at)
            elif sort in ("tag", "character"):
                raise failure(ParseError, f"{text} is not supported", at, hint="Tagged values and characters are not.")
            elif sort != "space":
                return atom(sort, text, at)
        return None

    def collection(self, bracket: str, at: Position, depth: int) -> Form:
        """What stands between brackets."""
        sort, end = OPEN[bracket]
        if depth > DEEPEST:
            raise failure(ParseError, f"nested more than {DEEPEST} deep", at)
        inside: list[Form] = []
        while True:
            found = self.form(depth)
            if found is None:
                raise failure(ParseError, f"{bracket!r} is not closed", at, hint=f"Close it with {end!r}.")
            if found.sort == "close":
                if found.value != end:
                    raise failure(ParseError, f"found {found.value!r}, expected {end!r}", found.at)
                return Form(sort, tuple(inside), at)
            inside.append(found)


def atom(sort: str, text: str, at: Position) -> Form:
    """A form without parts."""
    match sort:
        case "number":
            if len(text) > 80:
                raise failure(ParseError, "a number of more than 80 digits", at)
            return Form("number", int(text.rstrip("N")), at)
        case "float":
            return Form("float", float(text.rstrip("M")), at)
        case "string":
            return Form("string", re.sub(r"\\(.)", lambda found: escape(found[1], at), text[1:-1], flags=re.DOTALL), at)
    if sort == "symbol" and text in ("true", "false"):
        return Form("bool", text == "true", at)
    return Form("nil" if text == "nil" else sort, text, at)


def escape(letter: str, at: Position) -> str:
    """What a backslash and a letter stand for."""
    if letter not in ESCAPES:
        raise failure(ParseError, f"no such escape: \\{letter}", at)
    return ESCAPES[letter]


def read_forms(text: str, name: str = "query") -> list[Form]:
    """The forms of a text."""
    return EdnReader(SourceText(name, text)).all()

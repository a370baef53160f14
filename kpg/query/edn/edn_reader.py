"""Read EDN text into forms, each with its position.

    [:find ?x :where [?x :person/name "Ann"]]   ->   a vector of a keyword, a symbol, a keyword and a vector

Commas are white space, `;` begins a comment, `#_` drops the next form, and `#"a+"` is a regular expression. The reader
also accepts sets, so that the parser can refuse them at their position. `end_of_form` finds the end of a form in
unfinished text. Cost: time in proportion to the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from kpg.errors import ParseError
from kpg.query.source_text import NOWHERE, Position, SourceText, failure

BRACKETS = {"(": ("list", ")"), "[": ("vector", "]"), "{": ("map", "}"), "#{": ("set", "}")}
EDN_TOKEN = re.compile(
    r"""
      (?P<space>[\s,]+|;[^\n]*)
    | (?P<discard>\#_)
    | (?P<open>\#\{|[(\[{])
    | (?P<close>[)\]}])
    | (?P<string>"(?:[^"\\]|\\.)*")
    | (?P<regex>\#"(?:[^"\\]|\\.)*")
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
EDN_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}
MAX_FORM_DEPTH = 100  # each level takes two Python frames
TAGS: dict[str, Callable[[str], object]] = {"#inst": datetime.fromisoformat, "#uuid": UUID}
MAX_DIGITS = 80  # far beyond 64 bits; converting much longer texts to integers takes quadratic time


@dataclass(frozen=True, slots=True)
class Form:
    """A form: its kind, its value, and its position. A collection has a tuple of forms as its value, and a span."""

    kind: str  # list, vector, map, set, string, tagged, regex, number, float, keyword, symbol, bool, nil
    value: Any
    at: Position
    span: Position = NOWHERE

    def is_symbol(self, *names: str) -> bool:
        """Return whether this is one of these symbols."""
        return self.kind == "symbol" and self.value in names


class EdnReader:
    """A recursive-descent reader; `offset` is the position of the next unread character."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.offset = 0
        self.line_starts = [0, *(match.end() for match in re.finditer("\n", source.text))]

    def all(self) -> list[Form]:
        """Read every form of the text."""
        forms: list[Form] = []
        while (form := self.form(0)) is not None:
            if form.kind == "close":
                raise failure(
                    ParseError, f"{form.value!r} closes nothing", form.at, hint="Remove it, or open a bracket."
                )
            forms.append(form)
        return forms

    def at(self, length: int) -> Position:
        """Return the position of the next `length` characters."""
        line = bisect_right(self.line_starts, self.offset)
        return Position(self.source, line, self.offset - self.line_starts[line - 1] + 1, length)

    def form(self, depth: int) -> Form | None:
        """Read the next form; a closing bracket is a form of kind "close"; None is the end of the text."""
        while self.offset < len(self.source.text):
            match = EDN_TOKEN.match(self.source.text, self.offset)
            if match is None:
                character = self.source.text[self.offset]
                what = "a string is not closed" if character == '"' else f"unexpected character {character!r}"
                raise failure(ParseError, what, self.at(1))
            kind, text, at = str(match.lastgroup), match[0], self.at(len(match[0]))
            self.offset = match.end()
            if kind == "discard":
                self.form(depth)
            elif kind == "open":
                return self.collection(text, at, depth + 1)
            elif kind == "close":
                return Form("close", text, at)
            elif text in TAGS:
                return self.tagged(text, at, depth)
            elif kind in ("tag", "character"):
                hint = "Write a string, number, keyword or symbol."
                raise failure(ParseError, f"{text} is not supported: tagged values and characters", at, hint=hint)
            elif kind != "space":
                return scalar(kind, text, at)
        return None

    def tagged(self, tag: str, at: Position, depth: int) -> Form:
        """Read the string behind a tag: `#inst "2024-05-01T12:00:00Z"` or `#uuid "..."`."""
        form = self.form(depth)
        try:
            if form is None or form.kind != "string":
                raise ValueError("a string in quotes must follow")
            TAGS[tag](form.value)
        except ValueError as error:
            hint = 'As in #inst "2024-05-01T12:00:00Z" and #uuid "6ba7b810-9dad-11d1-80b4-00c04fd430c8".'
            raise failure(ParseError, f"not a value of {tag}", at, detail=f"{error}.", hint=hint) from None
        return Form("tagged", form.value, at)

    def collection(self, bracket: str, at: Position, depth: int) -> Form:
        """Read the forms up to the closing bracket."""
        kind, closing = BRACKETS[bracket]
        if depth > MAX_FORM_DEPTH:
            hint = "Name parts of it with rules."
            raise failure(ParseError, f"nested more than {MAX_FORM_DEPTH} deep", at, hint=hint)
        items: list[Form] = []
        while True:
            form = self.form(depth)
            if form is None:
                raise failure(ParseError, f"{bracket!r} is not closed", at, hint=f"Close it with {closing!r}.")
            if form.kind == "close":
                if form.value != closing:
                    raise failure(ParseError, f"found {form.value!r}, expected {closing!r}", form.at)
                length = form.at.column + 1 - at.column if form.at.line == at.line else 1
                return Form(kind, tuple(items), at, at._replace(length=length))
            items.append(form)


def scalar(kind: str, text: str, at: Position) -> Form:
    """Return the form of a token that is not a collection."""
    match kind:
        case "number":
            if len(text) > MAX_DIGITS:
                raise failure(ParseError, f"a number has more than {MAX_DIGITS} digits", at)
            return Form("number", int(text.rstrip("N")), at)
        case "float":
            return Form("float", float(text.rstrip("M")), at)
        case "string":
            value = re.sub(r"\\(.)", lambda match: unescape(match[1], at), text[1:-1], flags=re.DOTALL)
            return Form("string", value, at)
        case "regex":
            return Form("regex", text[2:-1].replace('\\"', '"'), at)
    if kind == "symbol" and text in ("true", "false"):
        return Form("bool", text == "true", at)
    return Form("nil" if text == "nil" else kind, text, at)


def unescape(letter: str, at: Position) -> str:
    """Return the character that a backslash and a letter denote."""
    if letter not in EDN_ESCAPES:
        raise failure(ParseError, f"no such escape: \\{letter}", at, hint='The escapes are \\n \\t \\r \\" and \\\\.')
    return EDN_ESCAPES[letter]


def read_forms(text: str, name: str = "query") -> list[Form]:
    """Read the forms of a text; `name` is what errors call the text."""
    return EdnReader(SourceText(name, text)).all()


def end_of_form(text: str, start: int = 0) -> int | None:
    """Return the offset behind the bracketed form at `start`, or None if a bracket or string is still open.

    Malformed characters are skipped: reading the form reports them.
    """
    depth, offset = 0, start
    while offset < len(text):
        match = EDN_TOKEN.match(text, offset)
        if match is None and text[offset] == '"':
            return None
        kind, offset = (match.lastgroup, match.end()) if match else ("", offset + 1)
        depth += (kind == "open") - (kind == "close")
        if depth <= 0 and kind == "close":
            return offset
    return None

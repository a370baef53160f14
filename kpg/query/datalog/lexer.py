"""Datalog text as tokens, each with its place.

    .decl edge(x: number)   ->   directive ".decl", name "edge", symbol "(", name "x", symbol ":", ...

Comments (// and /* */) and white space are dropped. One pass, one regular expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from kpg.errors import ParseError
from kpg.query.source_text import Position, SourceText, failure

TOKEN = re.compile(
    r"""
      (?P<space>[ \t\r\f\v]+)
    | (?P<newline>\n)
    | (?P<comment>//[^\n]*)
    | (?P<long_comment>/\*)
    | (?P<preprocessor>\#[ \t]*[A-Za-z_]*)
    | (?P<float>[0-9]+\.[0-9]+(?:[eE][-+]?[0-9]+)?(?![A-Za-z0-9_?]))
    | (?P<number>(?:0x[0-9A-Fa-f]+|0b[01]+|[0-9]+)u?(?![A-Za-z0-9_?]))
    | (?P<directive>\.(?:decl|type|number_type|symbol_type|input|output|printsize|include|pragma|plan|comp|init
                        |override|functor|limitsize|lattice)(?![A-Za-z0-9_?]))
    | (?P<name>[A-Za-z_?][A-Za-z0-9_?]*)
    | (?P<plain>"[^"\\\n]*")
    | (?P<string>")
    | (?P<symbol>:-|<=|>=|!=|<:|[().,:;!=<>{}\[\]+\-*/%^|&$@])
    """,
    re.VERBOSE,
)
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "'": "'", "0": "\0"}


class Token(NamedTuple):
    """A piece of text: its sort, what it says, and where it stands."""

    sort: str  # number, float, string, name, symbol, directive, preprocessor, end
    text: str
    at: Position


class Lexer:
    """Walks over a text, knowing line and column."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.text = source.text
        self.offset = 0
        self.line = 1
        self.start = 0  # of the line

    def tokens(self) -> Iterator[Token]:
        """All tokens, an end last."""
        while self.offset < len(self.text):
            found = TOKEN.match(self.text, self.offset)
            if found is None:
                raise self.unexpected()
            sort, text = str(found.lastgroup), found[0]
            if sort == "long_comment":
                self.skip_comment()
            elif sort == "string":
                yield self.string()
            elif sort == "plain":  # nothing escaped in it
                yield Token("string", text[1:-1], self.at(len(text)))
                self.offset = found.end()
            else:
                if sort not in ("space", "newline", "comment"):
                    yield Token(sort, text, self.at(len(text)))
                self.offset = found.end()
                if sort == "newline":
                    self.line, self.start = self.line + 1, self.offset
        yield Token("end", "", self.at(1))

    def at(self, length: int) -> Position:
        """The place where the lexer stands."""
        return Position(self.source, self.line, self.offset - self.start + 1, length)

    def skip_comment(self) -> None:
        """Go past a comment of any number of lines."""
        end = self.text.find("*/", self.offset + 2)
        if end < 0:
            raise failure(ParseError, "a comment is not closed", self.at(2), hint="Close it with */.")
        self.line += self.text.count("\n", self.offset, end)
        last = self.text.rfind("\n", self.offset, end)
        self.start = last + 1 if last >= 0 else self.start
        self.offset = end + 2

    def string(self) -> Token:
        """A string, its escapes replaced."""
        began, made = self.at(1), list[str]()
        place = self.offset + 1
        while place < len(self.text) and self.text[place] not in '"\n':
            if self.text[place] == "\\":
                place += 1
                escaped = self.text[place : place + 1]
                if escaped not in ESCAPES or not escaped:
                    at = Position(self.source, self.line, place - self.start, 2)
                    hint = 'There are \\n \\t \\r \\" \\\\.'
                    raise failure(ParseError, f"no such escape: \\{escaped.strip()}", at, hint=hint)
                made.append(ESCAPES[escaped])
            else:
                made.append(self.text[place])
            place += 1
        if self.text[place : place + 1] != '"':
            raise failure(ParseError, "a string is not closed on its line", began, hint='Close it with ".')
        length = place + 1 - self.offset
        token = Token("string", "".join(made), self.at(length))
        self.offset = place + 1
        return token

    def unexpected(self) -> ParseError:
        """The error for a character that begins nothing."""
        character = self.text[self.offset]
        hint = 'Strings are written with ".' if character in "'`" else None
        if character.isdigit():
            return failure(ParseError, "not a number", self.at(1), hint="A name cannot begin with a digit.")
        return failure(ParseError, f"unexpected character {character!r}", self.at(1), hint=hint)

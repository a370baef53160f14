"""Split Datalog text into tokens.

    .decl edge(x: number)   ->   directive ".decl", name "edge", symbol "(", name "x", symbol ":", ...

One regular expression, `LEXEME`, defines the language's tokens. It matches at every character of every text, so
`lexemes` cannot fail: the shell uses it to find the ends of statements in unfinished text. `tokens` is the strict
reading for the parser: it drops white space and comments, and raises ParseError with the position of the first
malformed lexeme. Both take one pass over the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from kpg.errors import ParseError
from kpg.query.source_text import Position, SourceText, failure

LEXEME = re.compile(
    r"""
      (?P<space>[ \t\r\f\v]+)
    | (?P<newline>\n)
    | (?P<comment>//[^\n]*)
    | (?P<block_comment>/\*(?s:.*?)\*/)
    | (?P<unclosed_comment>/\*(?s:.*))
    | (?P<preprocessor>\#[ \t]*[A-Za-z_]*)
    | (?P<address>[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+(?![A-Za-z0-9_?]))
    | (?P<float>[0-9]+\.[0-9]+(?:[eE][-+]?[0-9]+)?(?![A-Za-z0-9_?]))
    | (?P<number>(?:0x[0-9A-Fa-f]+|0b[01]+|[0-9]+)u?(?![A-Za-z0-9_?]))
    | (?P<malformed_number>[0-9][A-Za-z0-9_?]*)
    | (?P<directive>\.(?:decl|type|number_type|symbol_type|input|output|printsize|include|once|pragma|plan|comp
                        |init|override|functor|limitsize|lattice)(?![A-Za-z0-9_?(.]))
    | (?P<name>[A-Za-z_?][A-Za-z0-9_?]*)
    | (?P<string>"(?:[^"\\\n]|\\[^\n])*+")
    | (?P<unclosed_string>"[^\n]*)
    | (?P<symbol>:-|<=|>=|!=|<:|[().,:;!=<>{}\[\]+\-*/%^|&$@])
    | (?P<unknown>(?s:.))
    """,
    re.VERBOSE,
)
# The name of any relation, also of one that Datalog text cannot declare: the attribute :person/name, or a name of
# Python's. The shell accepts these names in single atoms.
RELATION_NAME = re.compile(r":?[A-Za-z_][\w./-]*")
# The lexemes of single atoms: a relation name where arguments or the end of the text follow, else as in programs.
# `x-1` among arguments remains a subtraction.
GOAL_LEXEME = re.compile(
    rf"(?P<relation>{RELATION_NAME.pattern}(?=\s*(?:\(|\Z))|:[A-Za-z_][\w./-]*) | {LEXEME.pattern}",
    re.VERBOSE,
)
ESCAPE = re.compile(r"\\(u(?![dD][89A-Fa-f])[0-9A-Fa-f]{4}|.)")  # U+D800 to U+DFFF are no characters
ESCAPES = {
    "a": "\a", "v": "\v",
    "n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "0": "\0", '"': '"', "\\": "\\", "'": "'", "/": "/",
}  # fmt: skip


class Token(NamedTuple):
    """A token: its kind, its text (of a string: the value), and its position."""

    kind: str  # number, float, address, string, name, symbol, directive, preprocessor, end
    text: str
    at: Position


Locate: TypeAlias = Callable[[int, int], Position]  # (offset, length) -> position


class Lexeme(NamedTuple):
    """A piece of text with its kind, the name of a group of `LEXEME`. The pieces of a text add up to the text."""

    kind: str
    start: int
    end: int


def lexemes(text: str, start: int = 0) -> Iterator[Lexeme]:
    """Split a text from an offset on into lexemes, lazily: white space, comments and malformed pieces included."""
    for match in LEXEME.finditer(text, start):
        yield Lexeme(str(match.lastgroup), match.start(), match.end())


def tokens(source: SourceText, pattern: re.Pattern[str] = LEXEME, locate: Locate | None = None) -> Iterator[Token]:
    """Yield the tokens of a text, an end token last; raise ParseError at the first malformed one.

    `locate` gives the positions in a text that a preprocessor has expanded.
    """
    line, line_start = 1, 0
    for match in pattern.finditer(source.text):
        kind, text = str(match.lastgroup), match[0]
        if kind == "newline":
            line, line_start = line + 1, match.end()
        elif kind == "block_comment":
            line += text.count("\n")
            line_start = max(line_start, source.text.rfind("\n", match.start(), match.end()) + 1)
        elif kind not in ("space", "comment"):
            at = Position(source, line, match.start() - line_start + 1, len(text))
            if locate is not None:
                at = locate(match.start(), len(text))
            if kind == "string":
                yield Token(kind, string_value(text, at), at)
            elif kind == "relation":
                yield Token("name", text, at)
            elif kind in MALFORMED:
                raise malformed(kind, text, at)
            else:
                yield Token(kind, text, at)
    end = Position(source, line, len(source.text) - line_start + 1, 1)
    yield Token("end", "", end if locate is None else locate(len(source.text), 1))


def without_annotations(tokens: list[Token]) -> list[Token]:
    """Return the tokens without annotations, `@[...]` and `@![...]`, which have no effect."""
    if not any(token.text == "@" and token.kind == "symbol" for token in tokens):
        return tokens
    kept: list[Token] = []
    index = 0
    while index < len(tokens):
        opening = index + 1 + (tokens[min(index + 1, len(tokens) - 1)].text == "!")
        is_annotation = tokens[index].text == "@" and opening < len(tokens) and tokens[opening].text == "["
        if is_annotation and tokens[index].kind == tokens[opening].kind == "symbol":
            index = end_of_brackets(tokens, opening)
        else:
            kept.append(tokens[index])
            index += 1
    return kept


def end_of_brackets(tokens: list[Token], opening: int) -> int:
    """Return the index behind the bracket that closes the one at `opening`."""
    depth = 0
    for index in range(opening, len(tokens)):
        if tokens[index].kind == "symbol":
            depth += (tokens[index].text in "[({") - (tokens[index].text in "])}")
        if depth == 0:
            return index + 1
    raise failure(ParseError, "an annotation is not closed", tokens[opening].at, hint="Close it with ].")


def string_value(text: str, at: Position) -> str:
    """Return the value of a string literal: its text without quotes, escapes replaced."""
    if "\\" not in text:
        return text[1:-1]

    def replace_escape(match: re.Match[str]) -> str:
        letter = match[1]
        if letter[0] == "u" and len(letter) == 5:
            return chr(int(letter[1:], 16))
        if letter not in ESCAPES:
            hint = "The escapes are \\a \\v \\n \\t \\r \\b \\f \\0 \\\" \\\\ \\/ \\' and \\uXXXX (hexadecimal)."
            position = at._replace(column=at.column + match.start() + 1, length=2)
            raise failure(ParseError, f"no such escape: \\{letter.strip()}", position, hint=hint)
        return ESCAPES[letter]

    return ESCAPE.sub(replace_escape, text[1:-1])


MALFORMED = ("unclosed_comment", "unclosed_string", "malformed_number", "unknown")


def malformed(kind: str, text: str, at: Position) -> ParseError:
    """Return the error for a malformed lexeme."""
    if kind == "unclosed_comment":
        return failure(ParseError, "a comment is not closed", at._replace(length=2), hint="Close it with */.")
    if kind == "unclosed_string":
        return failure(ParseError, "a string is not closed on its line", at._replace(length=1), hint='Close it with ".')
    if kind == "malformed_number":
        return failure(ParseError, f"{text[:40]!r} is not a number", at, hint="A name cannot begin with a digit.")
    hint = 'Strings are written with ".' if text in "'`" else None
    if text.isalpha() or text.isdigit():
        hint = 'Names have the letters a to z and A to Z, digits, _ and ?; any text is written with ".'
    return failure(ParseError, f"unexpected character {text!r}", at, hint=hint)

"""Read the tokens of a Datalog text in order: consume the next token, or raise the error if it does not fit.

Nesting is limited to MAX_NESTING, so that no text exhausts Python's stack.
"""

from __future__ import annotations

from kpg.errors import ParseError
from kpg.query.datalog.declarations import DeclaredTypes
from kpg.query.datalog.lexer import Token
from kpg.query.datalog.names import AS_WRITTEN, Names, qualified
from kpg.query.source_text import Position, failure

MAX_NESTING = 100  # each level takes several Python frames, one for each level of precedence


class TokenReader:
    """The tokens of one text, read in order. `token` is the next unread token."""

    def __init__(self, tokens: list[Token], types: DeclaredTypes, names: Names = AS_WRITTEN) -> None:
        self.tokens = tokens
        self.index = 0
        self.types = types
        self.names = names
        self.depth = 0

    @property
    def token(self) -> Token:
        """The next token."""
        return self.tokens[self.index]

    def advance(self) -> Token:
        """Consume the next token and return it. The end token is never consumed."""
        token = self.token
        self.index = min(self.index + 1, len(self.tokens) - 1)
        return token

    def take(self, text: str) -> bool:
        """Consume the next token if it is this symbol; return whether it was."""
        matches = self.token.kind == "symbol" and self.token.text == text
        if matches:
            self.advance()
        return matches

    def is_followed_by(self, *texts: str) -> bool:
        """Return whether the token after the next one is one of these symbols."""
        after = self.tokens[min(self.index + 1, len(self.tokens) - 1)]
        return after.kind == "symbol" and after.text in texts

    def is_followed_by_adjacent_name(self) -> bool:
        """Return whether the token after the next one is a name, without white space in between."""
        after = self.tokens[min(self.index + 1, len(self.tokens) - 1)]
        here = self.token.at
        return after.kind == "name" and (after.at.line, after.at.column) == (here.line, here.column + here.length)

    def expect(self, kind: str, what: str) -> Token:
        """Consume a token of this kind, or raise ParseError that `what` was expected."""
        if self.token.kind != kind:
            raise self.unexpected(what)
        return self.advance()

    def expect_name(self, what: str) -> Token:
        """Consume a name."""
        return self.expect("name", f"the name of {what}")

    def expect_qualified_name(self, what: str) -> Token:
        """Consume `relation` or `instance.relation`, and return it as one token."""
        token = self.expect_name(what)
        while self.token.text == "." and self.token.at.line == token.at.line and self.is_followed_by_adjacent_name():
            self.advance()
            token = qualified(token, self.advance())
        return token

    def expect_type(self) -> Token:
        """Consume the name of a type, and return it as the program declares it."""
        name = self.expect_qualified_name("a type")
        return name._replace(text=self.names.type(name.text))

    def expect_symbol(self, text: str, what: str) -> Token:
        """Consume this symbol, or raise ParseError that `what` was expected."""
        if not (self.token.kind == "symbol" and self.token.text == text):
            raise self.unexpected(what)
        return self.advance()

    def unexpected(self, expected: str) -> ParseError:
        """Return the error for a next token that does not fit."""
        token = self.token
        shown = "the end of the text" if token.kind == "end" else repr(token.text)
        return failure(ParseError, f"found {shown}, expected {expected}", token.at)

    def span(self, first: Position) -> Position:
        """Return the range from a position to the last consumed token, or to the end of its line."""
        last = self.tokens[self.index - 1].at
        end = last.column + last.length if last.line == first.line else len(first.source.line(first.line)) + 1
        return first._replace(length=max(1, end - first.column))

    def enter_nesting(self, at: Position) -> None:
        """Count one more level of nesting; raise ParseError beyond MAX_NESTING."""
        self.depth += 1
        if self.depth > MAX_NESTING:
            hint = "Name parts of it with rules of their own."
            raise failure(ParseError, f"nested more than {MAX_NESTING} deep", at, hint=hint)

"""Rules for single tokens: names, keywords, literals, parameters; and the spans of the nodes built from them.

sqlglot's parser supplies the cursor over tokens and the classes of nodes. It accepts much that PostgreSQL refuses
(BETWEEN without AND, unbalanced function calls, FROM before SELECT, any keyword as a name), so the classes here and in
the files beside it replace its rules for expressions and queries by those of PostgreSQL's grammar, rule by rule.

Every node that a rule builds records where its text starts and ends (`first` and `last` in its meta data).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeVar

from sqlglot import exp
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.tokenizer_core import Token, TokenType

from kpg.errors import NotSupported, ParseError, ProgramError
from kpg.query.source_text import SourceText
from kpg.sql.parse.postgres_tokens import (
    COLUMN_ONLY,
    FUNCTION_OR_TYPE,
    RESERVED,
    STRINGS,
    PostgresDialect,
    is_word,
)
from kpg.sql.parse.spans import Span
from kpg.sql.parse.sql_failures import not_supported, sql_failure

Node = TypeVar("Node", bound=exp.Expr)
Item = TypeVar("Item")


class TokenRules(PostgresParser):
    """A cursor over the tokens of one statement, with PostgreSQL's rules for names and literals."""

    def __init__(self, source: SourceText, tokens: list[Token]) -> None:
        super().__init__(dialect=PostgresDialect())
        self.source = source
        self.sql = source.text
        self.deferred: list[ProgramError] = []  # errors that count only if the syntax is correct
        self._chunks = [tokens]
        self._advance_chunk()

    # --- errors

    def span(self, token: Token) -> Span:
        """Return the characters of a token; the end of the text for the end of the tokens."""
        if not token:
            end = self._tokens[-1].end + 1 if self._tokens else len(self.source.text)
            return Span(self.source, end, end)
        return Span(self.source, token.start, token.end + 1)

    def raise_error(self, message: str, token: Token | None = None) -> NoReturn:
        """Raise a syntax error at a token: the current one, unless another is given."""
        raise sql_failure(ParseError, message, self.span(token or self._curr), "42601")

    def unexpected(self, wanted: str | None = None) -> NoReturn:
        """Raise the error of a token that no rule accepts here."""
        what = (
            f"syntax error at or near {self.span(self._curr).text()!r}"
            if self._curr
            else "syntax error at end of input"
        )
        raise sql_failure(
            ParseError, what, self.span(self._curr), "42601", hint=f"Expected {wanted}." if wanted else None
        )

    def unsupported(self, what: str, start: int | None = None) -> NotSupported:
        """Return the error of syntax that kpg does not support, from a token's index to the current token."""
        first = self._tokens[start] if start is not None and start < self._tokens_size else self._curr
        last = self._prev if start is not None and self._index > start else self._curr
        span = Span(self.source, self.span(first).start, max(self.span(first).end, self.span(last).end))
        return not_supported(what, span)

    # --- spans

    def spanned(self, node: Node, start: int) -> Node:
        """Record that a node is written from the token with index `start` to the one before the current token."""
        if self._index > start:
            node.meta["first"] = self._tokens[start].start
            node.meta["last"] = self._prev.end + 1
        return node

    # --- keywords and punctuation

    def at_word(self, *expected: str) -> bool:
        """Return whether the next tokens are these words."""
        for offset, word in enumerate(expected):
            index = self._index + offset
            if index >= self._tokens_size:
                return False
            token = self._tokens[index]
            if not is_word(token) or token.text.lower() != word:
                return False
        return True

    def accept(self, *expected: str) -> bool:
        """Skip the next tokens if they are these words."""
        if self.at_word(*expected):
            self._advance(len(expected))
            return True
        return False

    def expect(self, *expected: str) -> None:
        """Skip these words; anything else is a syntax error."""
        for word in expected:
            if not self.accept(word):
                self.unexpected(word.upper())

    def one_of(self, *choices: str) -> str | None:
        """Skip the next token if it is one of some words, and return it in lower case."""
        if is_word(self._curr) and self._curr.text.lower() in choices:
            self._advance()
            return self._prev.text.lower()
        return None

    def at_symbol(self, text: str, ahead: int = 0) -> bool:
        """Return whether a token is this punctuation."""
        index = self._index + ahead
        if index >= self._tokens_size:
            return False
        token = self._tokens[index]
        return token.text == text and token.token_type not in STRINGS and token.token_type != TokenType.IDENTIFIER

    def accept_symbol(self, text: str) -> bool:
        """Skip the next token if it is this punctuation."""
        if self.at_symbol(text):
            self._advance()
            return True
        return False

    def expect_symbol(self, text: str) -> None:
        """Skip this punctuation; anything else is a syntax error."""
        if not self.accept_symbol(text):
            self.unexpected(repr(text))

    def commas(self, rule: Callable[[], Item]) -> list[Item]:
        """Parse one or more of something, separated by commas."""
        items = [rule()]
        while self.accept_symbol(","):
            items.append(rule())
        return items

    def wrapped(self, rule: Callable[[], Item]) -> Item:
        """Parse something within parentheses."""
        self.expect_symbol("(")
        item = rule()
        self.expect_symbol(")")
        return item

    # --- names

    def at_column_name(self) -> bool:
        """Return whether the next token may name a column or table."""
        if self._curr.token_type == TokenType.IDENTIFIER:
            return True
        word = self._curr.text.lower()
        return is_word(self._curr) and word not in RESERVED and word not in FUNCTION_OR_TYPE

    def at_function_name(self) -> bool:
        """Return whether the next token may name a function or type."""
        if self._curr.token_type == TokenType.IDENTIFIER:
            return True
        word = self._curr.text.lower()
        return is_word(self._curr) and word not in RESERVED and word not in COLUMN_ONLY

    def identifier(self) -> exp.Identifier:
        """Parse the name of a column or table."""
        if not self.at_column_name():
            self.unexpected("a name")
        return self.any_identifier()

    def label(self) -> exp.Identifier:
        """Parse a name in a place where keywords are allowed: after AS, or after a dot."""
        if self._curr.token_type != TokenType.IDENTIFIER and not is_word(self._curr):
            self.unexpected("a name")
        return self.any_identifier()

    def any_identifier(self) -> exp.Identifier:
        """Return the current token as a name."""
        self._advance()
        quoted = self._prev.token_type == TokenType.IDENTIFIER
        if quoted and not self._prev.text:
            self.raise_error("a quoted name has no characters", self._prev)
        return self.spanned(exp.Identifier(this=self._prev.text, quoted=quoted), self._index - 1)

    # --- literals

    def string_literal(self) -> exp.Literal:
        """Parse a string constant; parts on several lines are one string."""
        start = self._index
        if self._curr.token_type not in STRINGS:
            self.unexpected("a string")
        if self._curr.token_type == TokenType.UNICODE_STRING:
            raise self.unsupported("a string with Unicode escapes (U&'…')")
        self._advance()
        text = self._prev.text
        while self._curr.token_type == TokenType.STRING:
            if "\n" not in self.source.text[self._prev.end + 1 : self._curr.start]:
                self.unexpected()
            self._advance()
            text += self._prev.text
        return self.spanned(exp.Literal(this=text, is_string=True), start)

    def number_literal(self) -> exp.Literal:
        """Parse a number without a sign."""
        start = self._index
        self._advance()
        text = self._prev.text
        if text == ".":
            if self._curr.token_type != TokenType.NUMBER or self._curr.start != self._prev.end + 1:
                self.unexpected()
            self._advance()
            text = f".{self._prev.text}"
        after = self.source.text[self._prev.end + 1 : self._prev.end + 2]
        if after and (after.isalnum() or after == "_"):
            self.raise_error("a number ends with letters", self._prev)
        return self.spanned(exp.Literal(this=text, is_string=False), start)

    def parameter(self) -> exp.Placeholder:
        """Parse `:name` or `$1`."""
        start = self._index
        named = self.at_symbol(":")
        self._advance()
        ok = is_word(self._curr) if named else self._curr.token_type == TokenType.NUMBER and self._curr.text.isdigit()
        if not ok or self._curr.start != self._prev.end + 1:
            self.unexpected("the name of a parameter")
        self._advance()
        return self.spanned(exp.Placeholder(this=self._prev.text), start)

    def integer(self) -> int:
        """Parse an integer constant."""
        if self._curr.token_type != TokenType.NUMBER or not self._curr.text.isdigit():
            self.unexpected("an integer")
        self._advance()
        return int(self._prev.text)

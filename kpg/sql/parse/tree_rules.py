"""Rules that statements share: names, options, and queries and expressions as trees with their text."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from kpg.sql.parse.postgres_tokens import STRINGS, folded, is_word
from kpg.sql.parse.query_rules import QueryRules
from kpg.sql.parse.spans import Span
from kpg.sql.parse.sql_statements import SqlName, SyntaxTree

PUBLIC_SCHEMA = "public"


class TreeRules(QueryRules):
    """Parts of statements."""

    def span_from(self, start: int) -> Span:
        """Return the text from the token with an index to the one before the current token."""
        first = self._tokens[min(start, self._tokens_size - 1)]
        last = self._prev if self._index > start else first
        return Span(self.source, first.start, last.end + 1)

    def tree(self, node: exp.Expr, start: int) -> SyntaxTree:
        """Return a node with its text."""
        return SyntaxTree(node, self.span_from(start))

    def query_tree(self) -> SyntaxTree:
        """Parse a query."""
        start = self._index
        return self.tree(self.parse_query(), start)

    def expression_tree(self) -> SyntaxTree:
        """Parse an expression."""
        start = self._index
        return self.tree(self.parse_expression(), start)

    def restricted_tree(self) -> SyntaxTree:
        """Parse a default, whose operators stop before the constraints that may follow."""
        start = self._index
        return self.tree(self.parse_expression(4, restricted=True), start)

    def name(self) -> SqlName:
        """Parse a name without a schema."""
        start = self._index
        return self.as_name(self.identifier(), start)

    def as_name(self, identifier: exp.Identifier, start: int) -> SqlName:
        """Return a name, folded unless it is quoted."""
        text = identifier.name if identifier.args.get("quoted") else folded(identifier.name)
        return SqlName(text, self.span_from(start))

    def qualified_name(self) -> SqlName:
        """Parse a name with an optional schema: `public` is left out."""
        first = self.name()
        if not self.at_symbol("."):
            return first
        start = self._index - 1
        self._advance()
        second = self.as_name(self.label(), self._index - 1)
        if self.at_symbol("."):
            raise self.unsupported("a name with a database", start)
        text = second.text if first.text == PUBLIC_SCHEMA else f"{first.text}.{second.text}"
        return SqlName(text, self.span_from(start))

    def name_list(self) -> tuple[SqlName, ...]:
        """Parse names within parentheses."""
        return tuple(self.wrapped(lambda: self.commas(self.name)))

    def options(self) -> dict[str, str]:
        """Parse (name [=] value, …); an option without a value is "true"."""
        options: dict[str, str] = {}
        for name, value in self.wrapped(lambda: self.commas(self.option)):
            if name in options:
                self.raise_error(f"the option {name} is given twice", self._prev)
            options[name] = value
        return options

    def option(self) -> tuple[str, str]:
        """Parse one option."""
        name = folded(self.label().name)
        self.accept_symbol("=")
        if self.at_symbol(",") or self.at_symbol(")"):
            return name, "true"
        return name, self.option_value()

    def option_value(self) -> str:
        """Parse the value of an option: a string, a number or a word."""
        sign = "-" if self.accept_symbol("-") else ""
        token = self._curr
        if token.token_type in STRINGS or token.token_type in (TokenType.NUMBER, TokenType.IDENTIFIER):
            self._advance()
            return sign + token.text
        if sign or not is_word(token):
            self.unexpected("a value")
        self._advance()
        return folded(token.text)

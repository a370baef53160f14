"""Rules for primary expressions: columns, constants, CASE, ARRAY, ROW, function calls, subqueries, subscripts."""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from kpg.sql.parse.call_rules import BARE_FUNCTIONS, SPECIAL_CALLS, CallRules
from kpg.sql.parse.postgres_tokens import STRINGS, is_word
from kpg.sql.parse.type_rules import TYPE_WORDS

QUERY_WORDS: Final = ("select", "values", "with", "table")


class PrimaryRules(CallRules):
    """PostgreSQL's rules for c_expr."""

    @abstractmethod
    def parse_query(self) -> exp.Expr:
        """Parse a query up to the end of its clauses."""

    def primary(self) -> exp.Expr:
        """Parse a primary expression."""
        start = self._index
        token = self._curr
        if not token:
            self.unexpected("an expression")
        if token.token_type == TokenType.NUMBER or self.at_symbol("."):
            return self.number_literal()
        if token.token_type in STRINGS:
            return self.string_literal()
        if token.token_type in (TokenType.BIT_STRING, TokenType.HEX_STRING):
            raise self.unsupported("a bit string")
        if token.token_type in (TokenType.NATIONAL_STRING, TokenType.RAW_STRING):
            self.unexpected()
        if self.at_symbol(":") or self.at_symbol("$"):
            return self.indirection(self.parameter(), start)
        if self.at_symbol("("):
            return self.parenthesised()
        if is_word(token):
            return self.word_primary(token.text.lower())
        return self.named_primary()

    # --- words

    def word_primary(self, word: str) -> exp.Expr:
        """Parse a primary expression that starts with a word."""
        start = self._index
        if word in ("null", "true", "false", "default"):
            self._advance()
            nodes = {"null": exp.Null(), "true": exp.Boolean(this=True), "false": exp.Boolean(this=False)}
            return self.spanned(nodes.get(word) or exp.Var(this="DEFAULT"), start)
        if word == "case":
            return self.case()
        if word == "array" and (self.at_symbol("[", 1) or self.at_symbol("(", 1)):
            return self.array()
        if word == "exists" and self.at_symbol("(", 1):
            self._advance()
            query = self.subquery_or_none()
            if query is None:
                self.unexpected("a query")
            return self.spanned(exp.Exists(this=query), start)
        if word == "row" and self.at_symbol("(", 1):
            self._advance()
            items = self.wrapped(lambda: [] if self.at_symbol(")") else self.commas(self.parse_expression))
            return self.spanned(exp.Tuple(expressions=items), start)
        if word == "grouping" and self.at_symbol("(", 1):
            self._advance()
            items = self.wrapped(lambda: self.commas(self.parse_expression))
            return self.spanned(exp.Grouping(expressions=items), start)
        if word in SPECIAL_CALLS and self.at_symbol("(", 1):
            return self.special_call(word)
        if word in BARE_FUNCTIONS:
            return self.bare_function(word)
        return self.typed_literal(word) or self.named_primary()

    def typed_literal(self, word: str) -> exp.Expr | None:
        """Parse `date '2026-01-01'` and the like; None if no string follows the type."""
        start = self._index
        if word == "interval" and (self._next.token_type in STRINGS):
            self._advance()
            text = self.string_literal()
            return self.spanned(exp.Interval(this=text, unit=self.interval_fields()), start)
        if self._next.token_type in STRINGS and (word in TYPE_WORDS or self.at_function_name()):
            kind = self.data_type()
            return self.spanned(exp.Cast(this=self.string_literal(), to=kind), start)
        if word not in TYPE_WORDS or not self.type_before_string():
            return None
        kind = self.data_type()
        return self.spanned(exp.Cast(this=self.string_literal(), to=kind), start)

    def type_before_string(self) -> bool:
        """Return whether the next tokens are the words and digits of a type, and then a string."""
        index = self._index + 1
        allowed = ("with", "without", "time", "zone", "precision", "varying", "character", "char")
        if index < self._tokens_size and self._tokens[index].text == "(":
            while index < self._tokens_size and self._tokens[index].text != ")":
                if self._tokens[index].token_type != TokenType.NUMBER and self._tokens[index].text not in "(,":
                    return False
                index += 1
            index += 1
        while index < self._tokens_size and self._tokens[index].text.lower() in allowed:
            index += 1
        return index < self._tokens_size and self._tokens[index].token_type in STRINGS

    def case(self) -> exp.Expr:
        """Parse CASE … END."""
        start = self._index
        self.expect("case")
        subject = None if self.at_word("when") else self.parse_expression()
        branches = []
        while self.at_word("when"):
            before = self._index
            self.expect("when")
            condition = self.parse_expression()
            self.expect("then")
            branches.append(self.spanned(exp.If(this=condition, true=self.parse_expression()), before))
        if not branches:
            self.unexpected("WHEN")
        default = self.parse_expression() if self.accept("else") else None
        self.expect("end")
        return self.spanned(exp.Case(this=subject, ifs=branches, default=default), start)

    def array(self) -> exp.Expr:
        """Parse ARRAY[…] or ARRAY(query)."""
        start = self._index
        self.expect("array")
        if self.at_symbol("["):
            return self.spanned(self.array_elements(), start)
        query = self.subquery_or_none()
        if query is None:
            self.unexpected("a query")
        return self.spanned(exp.Array(expressions=[query]), start)

    def array_elements(self) -> exp.Array:
        """Parse the bracketed elements of an array."""
        self.expect_symbol("[")
        if self.at_symbol("["):
            raise self.unsupported("an array of several dimensions")
        elements = [] if self.at_symbol("]") else self.commas(self.parse_expression)
        self.expect_symbol("]")
        return exp.Array(expressions=elements, bracket_notation=True)

    # --- parentheses

    def parenthesised(self) -> exp.Expr:
        """Parse a subquery, an expression or a row within parentheses."""
        start = self._index
        if query := self.subquery_or_none():
            return self.indirection(query, start)
        self.expect_symbol("(")
        items = self.commas(self.parse_expression)
        self.expect_symbol(")")
        if len(items) > 1:
            return self.spanned(exp.Tuple(expressions=items), start)
        return self.indirection(self.spanned(exp.Paren(this=items[0]), start), start)

    def subquery_or_none(self) -> exp.Subquery | None:
        """Parse a query within parentheses; None if something else is within them."""
        start = self._index
        depth = 0
        while self.at_symbol("(", depth):
            depth += 1
        after = self._tokens[start + depth] if start + depth < self._tokens_size else None
        if depth == 0 or after is None or not is_word(after) or after.text.lower() not in QUERY_WORDS:
            return None
        if depth > 1 and not self.query_fills_parentheses(depth):
            return None
        self.expect_symbol("(")
        query = self.parse_query()
        self.expect_symbol(")")
        return self.spanned(exp.Subquery(this=query), start)

    def query_fills_parentheses(self, depth: int) -> bool:
        """Return whether `((query) …)` is a query: whether a set operation, clause or parenthesis follows `(query)`."""
        index = self._index + depth
        open_parentheses = 1
        while index < self._tokens_size and open_parentheses:
            text = self._tokens[index].text if self._tokens[index].token_type not in STRINGS else ""
            open_parentheses += {"(": 1, ")": -1}.get(text, 0)
            index += 1
        if index >= self._tokens_size:
            return False
        after = self._tokens[index].text.lower()
        return after in (")", "union", "intersect", "except", "order", "limit", "offset", "fetch", "for")

    # --- names

    def named_primary(self) -> exp.Expr:
        """Parse a column or a function call."""
        start = self._index
        if self.at_function_name() and (self.at_symbol("(", 1) or self.qualified_call()):
            return self.function_call()
        if not self.at_column_name():
            self.unexpected("an expression")
        return self.column(start)

    def column(self, start: int) -> exp.Expr:
        """Parse a column: up to a schema and a table before its name, and subscripts after it."""
        parts: list[exp.Expr] = [self.identifier()]
        while self.accept_symbol("."):
            if self.at_symbol("*"):
                self._advance()
                parts.append(self.spanned(exp.Star(), self._index - 1))
                break
            parts.append(self.label())
        if len(parts) > 3:
            raise self.unsupported("a name with a database", start)
        names = dict(zip(("this", "table", "db"), reversed(parts), strict=False))
        node = self.spanned(exp.Column(**names), start)
        return node if isinstance(parts[-1], exp.Star) else self.indirection(node, start)

    def indirection(self, node: exp.Expr, start: int) -> exp.Expr:
        """Parse subscripts after a column, parameter or parenthesis."""
        while True:
            if self.accept_symbol("["):
                node = self.spanned(exp.Bracket(this=node, expressions=[self.subscript()]), start)
            elif self.at_symbol("."):
                node = self.row_field(node, start)
            else:
                return node

    def subscript(self) -> exp.Expr:
        """Parse what stands between brackets: an index or a slice."""
        start = self._index
        low = None if self.at_symbol(":") else self.parse_expression()
        if self.accept_symbol(":"):
            high = None if self.at_symbol("]") else self.parse_expression()
            self.expect_symbol("]")
            return self.spanned(exp.Slice(this=low, expression=high), start)
        self.expect_symbol("]")
        assert low is not None
        return low

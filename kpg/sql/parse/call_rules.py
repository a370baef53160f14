"""Rules for function calls: arguments, DISTINCT, ORDER BY, FILTER, WITHIN GROUP, and calls with a syntax of their own.

Calls with their own syntax become calls of the functions that PostgreSQL makes of them: `EXTRACT(year FROM d)` is
`extract('year', d)`, `TRIM(LEADING 'x' FROM s)` is `ltrim(s, 'x')`.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from kpg.sql.parse.postgres_tokens import STRINGS, folded, is_word
from kpg.sql.parse.type_rules import TypeRules

SPECIAL_CALLS: Final = frozenset(
    "cast coalesce nullif greatest least extract overlay position substring trim treat normalize".split()
)
BARE_FUNCTIONS: Final = frozenset(
    "current_date current_time current_timestamp localtime localtimestamp current_role current_user session_user user "
    "current_catalog current_schema".split()
)
SYSTEM_SCHEMA: Final = "pg_catalog"
EXPAND_ARRAY: Final = ("information_schema", "_pg_expandarray")
EXPANDED: Final = "expanded"  # marks the call of `unnest` that stands for it
COLUMN_POSITION: Final = "position of a column"  # the function that `column_position` calls; no text can name it


def call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    """Return the call of a function."""
    return exp.Anonymous(this=exp.Identifier(this=name, quoted=False), expressions=list(arguments))


class CallRules(TypeRules):
    """PostgreSQL's rules for func_expr."""

    @abstractmethod
    def parse_expression(self, least: int = 1, *, restricted: bool = False) -> exp.Expr:
        """Parse an expression."""

    @abstractmethod
    def order_items(self) -> exp.Order:
        """Parse the keys after ORDER BY."""

    def qualified_call(self) -> bool:
        """Return whether the next tokens are a schema, a function and a parenthesis."""
        return self.at_symbol(".", 1) and self.at_symbol("(", 3)

    def function_call(self) -> exp.Expr:
        """Parse the call of a function by its name."""
        start = self._index
        name = self.label()
        schema = folded(name.name) if self.accept_symbol(".") else None
        if schema is not None:
            name = self.label()
            expands = (schema, folded(name.name)) == EXPAND_ARRAY
            if schema != SYSTEM_SCHEMA and not expands:
                raise self.unsupported("a function of another schema", start)
            if expands:  # JDBC reads keys by it; its rows are pairs of an element x and its position n
                name = exp.Identifier(this="unnest", quoted=False)
        node = exp.Anonymous(this=name, expressions=[])
        self.call_arguments(node)
        self.spanned(node, start)
        if schema == EXPAND_ARRAY[0]:
            node.meta[EXPANDED] = True
        return self.call_suffixes(node, start)

    def call_arguments(self, node: exp.Anonymous) -> None:
        """Parse the arguments of a call, with DISTINCT and ORDER BY."""
        self.expect_symbol("(")
        if self.accept_symbol("*"):
            node.set("expressions", [self.spanned(exp.Star(), self._index - 1)])
        elif not self.at_symbol(")"):
            if self.accept("distinct"):
                node.set("distinct", True)
            else:
                self.accept("all")
            node.set("expressions", self.commas(self.argument))
            if self.accept("order"):
                self.expect("by")
                node.set("order", self.order_items())
        self.expect_symbol(")")

    def argument(self) -> exp.Expr:
        """Parse one argument."""
        if self.at_word("variadic"):
            raise self.unsupported("VARIADIC")
        if (is_word(self._curr) or self._curr.token_type == TokenType.IDENTIFIER) and (
            self.at_symbol("=>", 1) or self.at_symbol(":=", 1)
        ):
            raise self.unsupported("an argument by name")
        return self.parse_expression()

    def call_suffixes(self, node: exp.Anonymous, start: int) -> exp.Expr:
        """Parse WITHIN GROUP, FILTER and OVER after a call."""
        if self.accept("within"):
            self.expect("group")
            self.expect_symbol("(")
            self.expect("order", "by")
            node.set("within_group", self.order_items())
            self.expect_symbol(")")
        if self.at_word("filter") and self.at_symbol("(", 1):
            self._advance()
            self.expect_symbol("(")
            self.expect("where")
            node.set("filter", self.parse_expression())
            self.expect_symbol(")")
        if self.at_word("over") and (self.at_symbol("(", 1) or is_word(self._next)):
            position = self.column_position(node, start)
            if position is None:
                raise self.unsupported("a window function (OVER)", start)
            return position
        return self.spanned(node, start)

    def column_position(self, node: exp.Anonymous, start: int) -> exp.Expr | None:
        """Parse the window by which JDBC numbers the columns of each table; return None for any other one."""
        before = self._index
        if folded(node.this.name) == "row_number" and self.accept("over") and self.accept_symbol("("):
            if self.accept("partition", "by"):
                table = self.parse_expression()
                if self.accept("order", "by"):
                    column = self.parse_expression()
                    if self.accept_symbol(")") and (table.name, column.name) == ("attrelid", "attnum"):
                        return self.spanned(call(COLUMN_POSITION, table, column), start)
        self._retreat(before)
        return None

    def row_field(self, node: exp.Expr, start: int) -> exp.Expr:
        """Parse a field of a row; only the rows of `_pg_expandarray` have fields."""
        self.expect_symbol(".")
        field, row = folded(self.label().name), node.unnest()
        if row.meta.get(EXPANDED) and field == "n":
            one = exp.Literal.number(1)
            return self.spanned(call("generate_subscripts", *row.expressions, self.spanned(one, start)), start)
        is_element = row.meta.get(EXPANDED) or (isinstance(row, exp.Column) and folded(row.name) == "keys")
        if is_element and field == "x":
            return row
        raise self.unsupported("a field of a row", start)

    def bare_function(self, word: str) -> exp.Expr:
        """Parse a function that is called without parentheses."""
        start = self._index
        self._advance()
        if self.at_symbol("(") and word != "current_schema":
            raise self.unsupported(f"{word} with a precision", start)
        if self.accept_symbol("("):
            self.expect_symbol(")")
        return self.spanned(call(word), start)

    # --- calls with a syntax of their own

    def special_call(self, word: str) -> exp.Expr:
        """Parse a call with a syntax of its own."""
        start = self._index
        self._advance()
        if word in ("treat", "normalize"):
            raise self.unsupported(word, start)
        self.expect_symbol("(")
        node: exp.Expr = getattr(self, f"special_{word}")()
        self.expect_symbol(")")
        return self.spanned(node, start)

    def special_cast(self) -> exp.Expr:
        """Parse CAST(value AS type)."""
        value = self.parse_expression()
        self.expect("as")
        return exp.Cast(this=value, to=self.data_type())

    def special_coalesce(self) -> exp.Expr:
        """Parse the arguments of COALESCE."""
        return exp.Coalesce(expressions=self.commas(self.parse_expression))

    def special_greatest(self) -> exp.Expr:
        """Parse the arguments of GREATEST."""
        return exp.Greatest(expressions=self.commas(self.parse_expression))

    def special_least(self) -> exp.Expr:
        """Parse the arguments of LEAST."""
        return exp.Least(expressions=self.commas(self.parse_expression))

    def special_nullif(self) -> exp.Expr:
        """Parse the arguments of NULLIF."""
        first = self.parse_expression()
        self.expect_symbol(",")
        return exp.Nullif(this=first, expression=self.parse_expression())

    def special_extract(self) -> exp.Expr:
        """Parse EXTRACT(field FROM value)."""
        start = self._index
        if self._curr.token_type in STRINGS:
            field = self.string_literal()
        else:
            if not (self.at_column_name() and self.at_function_name()):
                self.unexpected("a field such as YEAR")
            field = self.spanned(exp.Literal(this=folded(self.label().name), is_string=True), start)
        self.expect("from")
        return call("extract", field, self.parse_expression())

    def special_overlay(self) -> exp.Expr:
        """Parse OVERLAY(text PLACING other FROM position [FOR length]), or its arguments with commas."""
        arguments = [self.parse_expression()]
        if not self.at_word("placing"):
            self.expect_symbol(",")
            return call("overlay", *arguments, *self.commas(self.parse_expression))
        self.expect("placing")
        arguments.append(self.parse_expression())
        self.expect("from")
        arguments.append(self.parse_expression())
        if self.accept("for"):
            arguments.append(self.parse_expression())
        return call("overlay", *arguments)

    def special_position(self) -> exp.Expr:
        """Parse POSITION(part IN text)."""
        part = self.parse_expression(4, restricted=True)
        self.expect("in")
        return call("position", self.parse_expression(4, restricted=True), part)

    def special_substring(self) -> exp.Expr:
        """Parse SUBSTRING(text FROM start FOR length), or its arguments with commas."""
        text = self.parse_expression()
        if self.accept_symbol(","):
            return call("substring", text, *self.commas(self.parse_expression))
        if self.accept("similar"):
            raise self.unsupported("SUBSTRING with SIMILAR")
        begin = self.parse_expression() if self.accept("from") else None
        length = self.parse_expression() if self.accept("for") else None
        if begin is None and length is not None and self.accept("from"):
            begin = self.parse_expression()
        if begin is None and length is None:
            return call("substring", text)
        one = exp.Literal(this="1", is_string=False)
        return call("substring", text, begin or one, *([] if length is None else [length]))

    def special_trim(self) -> exp.Expr:
        """Parse TRIM([BOTH | LEADING | TRAILING] [characters] FROM text), or its arguments with commas."""
        side = self.one_of("both", "leading", "trailing") or "both"
        name = {"both": "btrim", "leading": "ltrim", "trailing": "rtrim"}[side]
        if self.accept("from"):
            return call(name, *self.commas(self.parse_expression))
        items = self.commas(self.parse_expression)
        if self.accept("from"):
            if len(items) > 1:
                self.unexpected()
            return call(name, *self.commas(self.parse_expression), items[0])
        return call(name, *items)

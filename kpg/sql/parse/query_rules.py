"""Rules for queries: WITH, SELECT, VALUES, TABLE, set operations, ORDER BY and LIMIT.

Beyond PostgreSQL there is WITH MUTUALLY RECURSIVE, as in Materialize: each definition declares its column types, and
`(RETURN AT RECURSION LIMIT n)` or `(ERROR AT RECURSION LIMIT n)` bounds the rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from kpg.errors import ParseError
from kpg.sql.parse.expression_rules import ExpressionRules
from kpg.sql.parse.from_rules import FromRules
from kpg.sql.parse.postgres_tokens import LABEL_NEEDS_AS, is_word
from kpg.sql.parse.spans import Span
from kpg.sql.parse.sql_failures import sql_failure

SET_OPERATIONS: Final = {"union": exp.Union, "except": exp.Except, "intersect": exp.Intersect}


class QueryRules(ExpressionRules, FromRules):
    """PostgreSQL's rules for SelectStmt."""

    def parse_query(self) -> exp.Expr:
        """Parse a query: WITH, set operations, ORDER BY, LIMIT.

        Clauses after a query in parentheses belong to that query, which may not have them already.
        """
        start = self._index
        ctes = self.with_clause() if self.at_word("with") else None
        query = self.set_operation()
        if ctes is None and not self.at_query_suffix():
            return query
        while isinstance(query, exp.Subquery):
            query = query.this
        if ctes is not None:
            if query.args.get("with_"):
                self.raise_error("multiple WITH clauses not allowed", self._tokens[start])
            query.set("with_", ctes)
        return self.spanned(self.query_suffixes(query), start)

    def at_query_suffix(self) -> bool:
        """Return whether ORDER BY, LIMIT or the like follows."""
        return any(self.at_word(word) for word in ("order", "limit", "offset", "fetch", "for"))

    def query_suffixes(self, query: exp.Expr) -> exp.Expr:
        """Parse the clauses after a query that belong to all of it."""
        if self.accept("order"):
            if query.args.get("order"):
                self.raise_error("multiple ORDER BY clauses not allowed", self._prev)
            self.expect("by")
            query.set("order", self.order_items())
        while word := self.one_of("limit", "offset", "fetch"):
            clause = "offset" if word == "offset" else "limit"
            if query.args.get(clause):
                self.raise_error(f"multiple {clause.upper()} clauses not allowed", self._prev)
            query.set(clause, getattr(self, f"{word}_clause")())
        if self.at_word("for"):
            raise self.unsupported("FOR UPDATE or FOR SHARE")
        return query

    # --- set operations

    def set_operation(self) -> exp.Expr:
        """Parse operands of UNION and EXCEPT, which bind less tightly than INTERSECT."""
        return self.set_operands(("union", "except"), lambda: self.set_operands(("intersect",), self.operand))

    def set_operands(self, words: tuple[str, ...], operand: Callable[[], exp.Expr]) -> exp.Expr:
        """Parse operands that are combined from left to right."""
        start = self._index
        left = operand()
        while word := self.one_of(*words):
            everything = self.accept("all")
            if not everything:
                self.accept("distinct")
            right = operand()
            left = self.spanned(SET_OPERATIONS[word](this=left, expression=right, distinct=not everything), start)
        return left

    def operand(self) -> exp.Expr:
        """Parse an operand of a set operation: SELECT, VALUES, TABLE or a query in parentheses."""
        if self.at_word("select"):
            return self.select()
        if self.at_word("values"):
            return self.values()
        if self.at_word("table"):
            return self.table_query()
        if (query := self.subquery_or_none()) is not None:
            return query
        self.unexpected("a query")

    def table_query(self) -> exp.Expr:
        """Parse TABLE name, which is SELECT * FROM name."""
        start = self._index
        self.expect("table")
        source = exp.From(this=self.table_name())
        return self.spanned(exp.Select(expressions=[exp.Star()], from_=source), start)

    def values(self) -> exp.Values:
        """Parse VALUES with its rows."""
        start = self._index
        self.expect("values")
        rows = self.commas(self.values_row)
        if len({len(row.expressions) for row in rows}) > 1:
            other = next(row for row in rows if len(row.expressions) != len(rows[0].expressions))
            where = Span(self.source, other.meta["first"], other.meta["last"])
            raise sql_failure(ParseError, "VALUES lists must all be the same length", where, "42601")
        return self.spanned(exp.Values(expressions=rows), start)

    def values_row(self) -> exp.Tuple:
        """Parse one row of VALUES."""
        start = self._index
        items = self.wrapped(lambda: self.commas(self.parse_expression))
        return self.spanned(exp.Tuple(expressions=items), start)

    # --- SELECT

    def select(self) -> exp.Select:
        """Parse SELECT with its clauses up to HAVING."""
        start = self._index
        self.expect("select")
        node = exp.Select(distinct=self.distinct_clause())
        node.set("expressions", self.select_list())
        if self.at_word("into"):
            raise self.unsupported("SELECT INTO")
        if self.accept("from"):
            self.from_list(node)
        if self.accept("where"):
            node.set("where", exp.Where(this=self.parse_expression()))
        if self.accept("group"):
            self.expect("by")
            node.set("group", self.group_clause())
        if self.accept("having"):
            node.set("having", exp.Having(this=self.parse_expression()))
        if self.at_word("window"):
            raise self.unsupported("WINDOW")
        return self.spanned(node, start)

    def distinct_clause(self) -> exp.Distinct | None:
        """Parse DISTINCT [ON (…)] or ALL after SELECT."""
        if not self.accept("distinct"):
            self.accept("all")
            return None
        if not self.accept("on"):
            return exp.Distinct()
        keys = self.wrapped(lambda: self.commas(self.parse_expression))
        return exp.Distinct(on=exp.Tuple(expressions=keys))

    def select_list(self) -> list[exp.Expr]:
        """Parse the expressions of SELECT, which may be none."""
        ends = ("from", "where", "group", "having", "union", "intersect", "except", "order", "limit", "offset", "fetch")
        if (
            not self._curr
            or self.at_symbol(")")
            or any(self.at_word(word) for word in (*ends, "into", "for", "window"))
        ):
            return []
        return self.commas(self.select_item)

    def select_item(self) -> exp.Expr:
        """Parse an expression with its label, or a star."""
        start = self._index
        if self.accept_symbol("*"):
            return self.spanned(exp.Star(), start)
        value = self.parse_expression()
        if self.at_epoch():
            return value
        if self.accept("as"):
            label = self.label()
        elif self.at_bare_label():
            label = self.any_identifier()
        else:
            return value
        return self.spanned(exp.Alias(this=value, alias=label), start)

    def at_bare_label(self) -> bool:
        """Return whether the next token may name a result column without AS."""
        if self._curr.token_type == TokenType.IDENTIFIER:
            return True
        return is_word(self._curr) and self._curr.text.lower() not in LABEL_NEEDS_AS

    def group_clause(self) -> exp.Group:
        """Parse the items of GROUP BY."""
        start = self._index
        if self.accept("distinct"):
            raise self.unsupported("GROUP BY DISTINCT")
        self.accept("all")
        return self.spanned(exp.Group(expressions=self.commas(self.group_item)), start)

    def group_item(self) -> exp.Expr:
        """Parse an expression, ROLLUP, CUBE, GROUPING SETS or ()."""
        start = self._index
        if self.at_symbol("(") and self.at_symbol(")", 1):
            self._advance(2)
            return self.spanned(exp.Tuple(expressions=[]), start)
        if (self.at_word("rollup") or self.at_word("cube")) and self.at_symbol("(", 1):
            kind = exp.Rollup if self.one_of("rollup", "cube") == "rollup" else exp.Cube
            items = self.wrapped(lambda: self.commas(self.parse_expression))
            return self.spanned(kind(expressions=items), start)
        if self.accept("grouping", "sets"):
            items = self.wrapped(lambda: self.commas(self.group_item))
            return self.spanned(exp.GroupingSets(expressions=items), start)
        return self.parse_expression()

    # --- ORDER BY, LIMIT, OFFSET, FETCH

    def order_items(self) -> exp.Order:
        """Parse the keys after ORDER BY."""
        start = self._index
        return self.spanned(exp.Order(expressions=self.commas(self.order_item)), start)

    def order_item(self) -> exp.Ordered:
        """Parse one key of an order. Nulls are last by default, and first if it is descending."""
        start = self._index
        value = self.parse_expression()
        if self.at_word("using"):
            raise self.unsupported("ORDER BY … USING")
        descending = self.one_of("asc", "desc") == "desc"
        nulls_first = descending
        if self.accept("nulls"):
            word = self.one_of("first", "last")
            if word is None:
                self.unexpected("FIRST or LAST")
            nulls_first = word == "first"
        return self.spanned(exp.Ordered(this=value, desc=descending, nulls_first=nulls_first), start)

    def limit_clause(self) -> exp.Limit:
        """Parse the count after LIMIT."""
        start = self._index - 1
        count: exp.Expr = exp.Null() if self.accept("all") else self.parse_expression()
        if self.at_symbol(","):
            self.raise_error("LIMIT #,# syntax is not supported")
        return self.spanned(exp.Limit(expression=count), start)

    def offset_clause(self) -> exp.Offset:
        """Parse the count after OFFSET."""
        start = self._index - 1
        count = self.parse_expression()
        self.one_of("row", "rows")
        return self.spanned(exp.Offset(expression=count), start)

    def fetch_clause(self) -> exp.Limit:
        """Parse FIRST [count] ROWS, ONLY or WITH TIES."""
        start = self._index - 1
        if not self.one_of("first", "next"):
            self.unexpected("FIRST or NEXT")
        at_rows = self.at_word("row") or self.at_word("rows")
        count = exp.Literal(this="1", is_string=False) if at_rows else self.fetch_count()
        if not self.one_of("row", "rows"):
            self.unexpected("ROWS")
        ties = self.accept("with", "ties")
        if not ties:
            self.expect("only")
        return self.spanned(exp.Limit(expression=count, ties=ties or None), start)

    def fetch_count(self) -> exp.Expr:
        """Parse the count of FETCH: a constant with a sign, or a primary expression."""
        start = self._index
        if self.accept_symbol("-"):
            return self.spanned(exp.Neg(this=self.number_literal()), start)
        self.accept_symbol("+")
        return self.primary()

    # --- WITH

    def with_clause(self) -> exp.With:
        """Parse WITH [RECURSIVE] or WITH MUTUALLY RECURSIVE, up to the query that reads it."""
        start = self._index
        self.expect("with")
        if self.accept("mutually"):
            self.expect("recursive")
            node = exp.With(mutual=True, recursive=True, **self.recursion_limit())
            node.set("expressions", self.commas(self.mutual_definition))
        else:
            is_name = self.at_symbol("(", 1) or self._next.text.lower() == "as"
            recursive = not is_name and self.accept("recursive")
            node = exp.With(recursive=recursive or None, expressions=self.commas(self.common_table))
        return self.spanned(node, start)

    def recursion_limit(self) -> dict[str, object]:
        """Parse (RETURN AT RECURSION LIMIT n) or (ERROR AT RECURSION LIMIT n)."""
        if not (self.at_symbol("(")):
            return {}
        self._advance()
        word = self.one_of("return", "error")
        if word:
            self.expect("at")
        self.expect("recursion", "limit")
        self.accept_symbol("=")
        limit = self.integer()
        if limit < 1:
            self.raise_error("a recursion limit is at least 1", self._prev)
        self.expect_symbol(")")
        return {"limit": limit, "error_at_limit": word != "return"}

    def mutual_definition(self) -> exp.CTE:
        """Parse a definition of WITH MUTUALLY RECURSIVE: a name, typed columns, a query."""
        start = self._index
        name = self.identifier()
        columns = self.wrapped(lambda: self.commas(self.typed_column))
        self.expect("as")
        query = self.wrapped(self.parse_query)
        return self.spanned(exp.CTE(this=query, alias=exp.TableAlias(this=name, columns=columns)), start)

    def typed_column(self) -> exp.ColumnDef:
        """Parse a column with its type."""
        start = self._index
        return self.spanned(exp.ColumnDef(this=self.identifier(), kind=self.column_type()), start)

    def common_table(self) -> exp.CTE:
        """Parse a definition of WITH."""
        start = self._index
        name = self.identifier()
        columns = self.wrapped(lambda: self.commas(self.identifier)) if self.at_symbol("(") else []
        self.expect("as")
        self.accept("materialized") or self.accept("not", "materialized")
        self.expect_symbol("(")
        if any(self.at_word(word) for word in ("insert", "update", "delete")):
            raise self.unsupported("a data change in WITH")
        query = self.parse_query()
        self.expect_symbol(")")
        if self.at_word("search") or self.at_word("cycle"):
            raise self.unsupported(f"{self._curr.text.upper()} of a recursive query")
        return self.spanned(exp.CTE(this=query, alias=exp.TableAlias(this=name, columns=columns)), start)

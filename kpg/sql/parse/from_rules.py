"""Rules for FROM: tables, subqueries, functions, LATERAL, joins.

As in sqlglot's trees, the first item of FROM is its `this`; all others are joins of the SELECT in the order of the
text, where a comma is a join without kind, condition and method. A join in parentheses is a Paren around its first
item, which has the `joins`.
"""

from __future__ import annotations

from abc import abstractmethod

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from kpg.sql.parse.postgres_tokens import is_word
from kpg.sql.parse.primary_rules import PrimaryRules

EPOCH_STARTS = (":", "$", "(")  # besides digits: the tokens that an epoch starts with


class FromRules(PrimaryRules):
    """PostgreSQL's rules for from_list."""

    @abstractmethod
    def parse_query(self) -> exp.Expr:
        """Parse a query."""

    def from_list(self, node: exp.Expr) -> None:
        """Parse the items of FROM into a SELECT."""
        start = self._index
        first = self.from_item()
        node.set("from_", self.spanned(exp.From(this=first), start))
        joins = self.joins()
        while self.accept_symbol(","):
            before = self._index
            joins.append(self.spanned(exp.Join(this=self.from_item()), before))
            joins.extend(self.joins())
        node.set("joins", joins)

    def joins(self) -> list[exp.Expr]:
        """Parse the joins that follow an item."""
        joins: list[exp.Expr] = []
        while (join := self.join()) is not None:
            joins.append(join)
        return joins

    def join(self) -> exp.Join | None:
        """Parse one join; None if there is none."""
        start = self._index
        if self.accept("cross"):
            self.expect("join")
            return self.spanned(exp.Join(this=self.from_item(), kind="CROSS"), start)
        natural = self.accept("natural")
        word = self.one_of("inner", "left", "right", "full", "join")
        if word is None:
            if natural:
                self.unexpected("JOIN")
            return None
        if word in ("left", "right", "full"):
            self.accept("outer")
        if word != "join":
            self.expect("join")
        kind = "INNER" if word in ("inner", "join") else word.upper()
        item = self.from_item()
        if natural:
            return self.spanned(exp.Join(this=item, kind=kind, method="NATURAL"), start)
        nested = self.joins() if not (self.at_word("on") or self.at_word("using")) else []
        if nested:  # a JOIN b JOIN c ON … ON …: the inner join comes first
            item = self.spanned(exp.Paren(this=item, joins=nested), start)
        return self.join_condition(item, kind, start)

    def join_condition(self, item: exp.Expr, kind: str, start: int) -> exp.Join:
        """Parse ON or USING, which a join must have."""
        if self.accept("on"):
            return self.spanned(exp.Join(this=item, kind=kind, on=self.parse_expression()), start)
        if not self.accept("using"):
            self.unexpected("ON or USING")
        columns = self.wrapped(lambda: self.commas(self.identifier))
        if self.at_word("as"):
            raise self.unsupported("an alias of USING")
        return self.spanned(exp.Join(this=item, kind=kind, using=columns), start)

    def from_item(self) -> exp.Expr:
        """Parse a table, subquery, function or join in parentheses, with its alias."""
        start = self._index
        lateral = self.accept("lateral")
        if self.at_symbol("("):
            return self.parenthesised_item(lateral, start)
        if self.at_word("rows", "from"):
            raise self.unsupported("ROWS FROM")
        if self.at_function_name() and (self.at_symbol("(", 1) or self.qualified_call()):
            return self.function_item(start)
        if lateral:
            self.unexpected("a subquery or a function")
        if self.accept("only"):
            raise self.unsupported("ONLY", start)
        table = self.table_name()
        self.accept_symbol("*")
        table.set("alias", self.table_alias())
        if self.at_word("tablesample"):
            raise self.unsupported("TABLESAMPLE")
        return self.spanned(table, start)

    def parenthesised_item(self, lateral: bool, start: int) -> exp.Expr:
        """Parse a subquery or a join in parentheses."""
        query = self.subquery_or_none()
        if query is not None:
            query.set("alias", self.table_alias())
            if query.args.get("alias") is None:
                self.raise_error("subquery in FROM must have an alias", self._tokens[start])
            return self.spanned(exp.Lateral(this=query), start) if lateral else self.spanned(query, start)
        if lateral:
            self.unexpected("a subquery")
        self.expect_symbol("(")
        first = self.from_item()
        nested = self.joins()
        if not nested and not isinstance(first, exp.Paren):
            self.unexpected("JOIN")
        self.expect_symbol(")")
        node = exp.Paren(this=first, joins=nested, alias=self.table_alias())
        return self.spanned(node, start)

    def function_item(self, start: int) -> exp.Expr:
        """Parse a function that returns rows."""
        function = self.function_call()
        ordinality = self.accept("with", "ordinality")
        alias = self.table_alias()
        if self.at_symbol("("):
            raise self.unsupported("a column definition list")
        return self.spanned(exp.Table(this=function, ordinality=ordinality or None, alias=alias), start)

    def table_name(self) -> exp.Table:
        """Parse the name of a table, with a schema before it."""
        start = self._index
        first = self.identifier()
        if not self.accept_symbol("."):
            return self.spanned(exp.Table(this=first), start)
        second = self.label()
        if self.at_symbol("."):
            raise self.unsupported("a name with a database", start)
        return self.spanned(exp.Table(this=second, db=first), start)

    def table_alias(self) -> exp.TableAlias | None:
        """Parse [AS] name [(columns)]."""
        start = self._index
        if self.at_epoch():
            return None
        if self.accept("as"):
            name = self.identifier()
        elif self.at_column_name() and not self.at_clause():
            name = self.any_identifier()
        else:
            return None
        columns: list[exp.Identifier] = []
        if self.at_symbol("("):
            columns = self.wrapped(lambda: self.commas(self.alias_column))
        return self.spanned(exp.TableAlias(this=name, columns=columns), start)

    def alias_column(self) -> exp.Identifier:
        """Parse the name of a column in an alias."""
        name = self.identifier()
        if is_word(self._curr) or self._curr.token_type == TokenType.IDENTIFIER:
            raise self.unsupported("a column definition list")
        return name

    def at_clause(self) -> bool:
        """Return whether the next token starts a clause of a statement of kpg, and so is no alias."""
        return self.at_word("up", "to") or self.at_word("set")

    def at_epoch(self) -> bool:
        """Return whether AS OF and the start of an epoch follow: `AS of` alone is a label."""
        after = self._tokens[self._index + 2] if self._index + 2 < self._tokens_size else None
        return self.at_word("as", "of") and after is not None and (after.text in EPOCH_STARTS or after.text.isdigit())

"""Rules for data changes: INSERT, UPDATE, DELETE, TRUNCATE and COPY."""

from __future__ import annotations

from typing import Literal

from sqlglot import exp

from kpg.errors import ParseError
from kpg.sql.parse.definition_rules import DefinitionRules
from kpg.sql.parse.postgres_tokens import STRINGS
from kpg.sql.parse.sql_failures import sql_failure
from kpg.sql.parse.sql_statements import (
    Assignment,
    CopyStatement,
    DeleteStatement,
    InsertStatement,
    OnConflict,
    Returning,
    SqlName,
    SyntaxTree,
    TruncateStatement,
    UpdateStatement,
)


class ChangeRules(DefinitionRules):
    """PostgreSQL's rules for INSERT, UPDATE, DELETE, TRUNCATE and COPY."""

    # --- INSERT

    def insert(self, start: int, ctes: exp.With | None = None) -> InsertStatement:
        """Parse the rest of INSERT. WITH before it becomes part of its query."""
        self.expect("into")
        table = self.qualified_name()
        alias = self.name() if self.accept("as") else None
        columns = self.name_list() if self.at_symbol("(") and self.subquery_ahead() is False else None
        overriding = self.overriding()
        rows = None if self.accept("default", "values") else self.query_tree()
        if ctes is not None:
            if rows is None or rows.node.args.get("with_"):
                raise self.unsupported("WITH before this INSERT", start)
            rows.node.set("with_", ctes)
        conflict = self.on_conflict() if self.at_word("on") else None
        returning = self.returning()
        return InsertStatement(table, alias, columns, rows, overriding, conflict, returning, span=self.span_from(start))

    def subquery_ahead(self) -> bool:
        """Return whether the parenthesis at the current token opens a query."""
        depth = 0
        while self.at_symbol("(", depth):
            depth += 1
        token = self._tokens[self._index + depth] if self._index + depth < self._tokens_size else None
        return token is not None and token.text.lower() in ("select", "values", "with", "table")

    def overriding(self) -> Literal["system", "user"] | None:
        """Parse OVERRIDING SYSTEM VALUE or OVERRIDING USER VALUE."""
        if not self.accept("overriding"):
            return None
        system = self.accept("system")
        if not system:
            self.expect("user")
        self.expect("value")
        return "system" if system else "user"

    def on_conflict(self) -> OnConflict:
        """Parse ON CONFLICT."""
        self.expect("on", "conflict")
        start = self._index
        if self.at_word("on", "constraint"):
            raise self.unsupported("ON CONFLICT ON CONSTRAINT")
        target = self.name_list() if self.at_symbol("(") else ()
        if self.at_word("where"):
            raise self.unsupported("a conflict target with WHERE")
        self.expect("do")
        if self.accept("nothing"):
            return OnConflict(target)
        self.expect("update", "set")
        if not target:
            where = self.span_from(start)
            what = "ON CONFLICT DO UPDATE requires the columns of the key"
            raise sql_failure(ParseError, what, where, "42601", hint="Write ON CONFLICT (column, …) DO UPDATE.")
        assignments = self.assignments()
        condition = self.expression_tree() if self.accept("where") else None
        return OnConflict(target, assignments, condition)

    def returning(self) -> Returning | None:
        """Parse RETURNING."""
        if not self.accept("returning"):
            return None
        return Returning(tuple(self.commas(self.returning_item)))

    def returning_item(self) -> SyntaxTree:
        """Parse one item of RETURNING."""
        start = self._index
        return self.tree(self.select_item(), start)

    # --- UPDATE and DELETE

    def assignments(self) -> tuple[Assignment, ...]:
        """Parse the list after SET."""
        return tuple(entry for group in self.commas(self.assignment) for entry in group)

    def assignment(self) -> list[Assignment]:
        """Parse `column = value` or `(columns) = (values)`."""
        start = self._index
        if not self.at_symbol("("):
            column = self.assigned_column()
            self.expect_symbol("=")
            return [Assignment(column, self.assigned_value())]
        columns = self.wrapped(lambda: self.commas(self.assigned_column))
        self.expect_symbol("=")
        if self.subquery_ahead():
            query = self.expression_tree()
            count = len(columns)
            return [Assignment(column, query, position, count) for position, column in enumerate(columns)]
        self.accept("row")
        values = self.wrapped(lambda: self.commas(self.assigned_value))
        if len(columns) != len(values):
            what = "number of columns does not match number of values"
            raise sql_failure(ParseError, what, self.span_from(start), "42601")
        return [Assignment(column, value) for column, value in zip(columns, values, strict=True)]

    def assigned_column(self) -> SqlName:
        """Parse the column of an assignment."""
        column = self.name()
        if self.at_symbol("[") or self.at_symbol("."):
            raise self.unsupported("an assignment to a part of a column")
        return column

    def assigned_value(self) -> SyntaxTree | None:
        """Parse a new value; None is DEFAULT."""
        return None if self.accept("default") else self.expression_tree()

    def target(self) -> tuple[SqlName, SqlName | None]:
        """Parse the table that is changed, with its alias."""
        if self.at_word("only"):
            raise self.unsupported("ONLY")
        table = self.qualified_name()
        self.accept_symbol("*")
        if self.accept("as") or (self.at_column_name() and not self.at_word("set")):
            return table, self.name()
        return table, None

    def update(self, start: int, ctes: SyntaxTree | None = None) -> UpdateStatement:
        """Parse the rest of UPDATE."""
        table, alias = self.target()
        self.expect("set")
        assignments = self.assignments()
        sources = self.sources("from")
        condition = self.condition()
        returning = self.returning()
        span = self.span_from(start)
        return UpdateStatement(table, alias, assignments, sources, condition, returning, ctes, span=span)

    def delete(self, start: int, ctes: SyntaxTree | None = None) -> DeleteStatement:
        """Parse the rest of DELETE."""
        self.expect("from")
        table, alias = self.target()
        sources = self.sources("using")
        condition = self.condition()
        returning = self.returning()
        return DeleteStatement(table, alias, sources, condition, returning, ctes, span=self.span_from(start))

    def sources(self, word: str) -> tuple[SyntaxTree, ...]:
        """Parse the items after FROM of UPDATE or USING of DELETE: a SELECT without a list."""
        start = self._index
        if not self.accept(word):
            return ()
        node = exp.Select(expressions=[])
        self.from_list(node)
        return (self.tree(self.spanned(node, start), start),)

    def condition(self) -> SyntaxTree | None:
        """Parse WHERE of a data change."""
        if not self.accept("where"):
            return None
        if self.at_word("current", "of"):
            raise self.unsupported("WHERE CURRENT OF")
        return self.expression_tree()

    def truncate(self, start: int) -> TruncateStatement:
        """Parse the rest of TRUNCATE."""
        self.accept("table")
        tables = tuple(self.commas(self.qualified_name))
        restart = False
        if word := self.one_of("restart", "continue"):
            self.expect("identity")
            restart = word == "restart"
        cascade = self.one_of("cascade", "restrict") == "cascade"
        return TruncateStatement(tables, restart, cascade, span=self.span_from(start))

    # --- COPY

    def copy(self, start: int) -> CopyStatement:
        """Parse the rest of COPY."""
        query, table = None, None
        columns: tuple[SqlName, ...] = ()
        if self.at_symbol("("):
            self.expect_symbol("(")
            query = self.query_tree()
            self.expect_symbol(")")
        else:
            table = self.qualified_name()
            columns = self.name_list() if self.at_symbol("(") else ()
        direction = self.one_of("from", "to") if query is None else self.one_of("to")
        if direction is None:
            self.unexpected("FROM or TO" if query is None else "TO")
        path = self.copy_path(direction)
        options = self.copy_options()
        if self.at_word("where"):
            raise self.unsupported("WHERE of COPY")
        way: Literal["from", "to"] = "from" if direction == "from" else "to"
        return CopyStatement(way, table, columns, query, path, options, span=self.span_from(start))

    def copy_path(self, direction: str) -> str | None:
        """Parse the file; None is STDIN or STDOUT."""
        if self._curr.token_type in STRINGS:
            return str(self.string_literal().this)
        if self.at_word("program"):
            raise self.unsupported("COPY with PROGRAM")
        self.expect("stdin" if direction == "from" else "stdout")
        return None

    def copy_options(self) -> dict[str, str]:
        """Parse [WITH] (options), and the older CSV and HEADER without parentheses."""
        self.accept("with")
        if self.at_symbol("("):
            return self.options()
        options: dict[str, str] = {}
        while word := self.one_of("csv", "binary", "header", "delimiter", "null", "quote", "escape"):
            if word in ("csv", "binary"):
                options["format"] = word
            elif word == "header":
                options["header"] = "true"
            else:
                self.accept("as")
                options[word] = self.string_literal().this
        return options

"""Rules for definitions: CREATE TABLE, VIEW, MATERIALIZED VIEW, INDEX and SEQUENCE, and DROP."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Literal, NoReturn, cast

from kpg.errors import ParseError
from kpg.sql import sql_types
from kpg.sql.parse.postgres_tokens import folded
from kpg.sql.parse.sql_failures import sql_failure
from kpg.sql.parse.sql_statements import (
    CheckDefinition,
    ColumnDefinition,
    CreateIndex,
    CreateSequence,
    CreateTable,
    CreateView,
    DropStatement,
    SqlName,
    SqlStatement,
)
from kpg.sql.parse.tree_rules import TreeRules
from kpg.sql.parse.type_rules import SERIAL_TYPES

SEQUENCE_TYPES: Final = (sql_types.SMALLINT, sql_types.INTEGER, sql_types.BIGINT)
CONSTRAINT_WORDS: Final = ("constraint", "check", "primary", "unique", "foreign", "exclude", "like")


class TableParts:
    """What the items of one CREATE TABLE define."""

    def __init__(self) -> None:
        self.columns: list[ColumnDefinition] = []
        self.primary_key: tuple[SqlName, ...] = ()
        self.uniques: list[tuple[SqlName, ...]] = []
        self.enforced = True  # whether the primary key is checked
        self.checks: list[CheckDefinition] = []


class DefinitionRules(TreeRules):
    """PostgreSQL's rules for CREATE and DROP."""

    def create(self, start: int) -> SqlStatement:
        """Parse CREATE."""
        replaced = self.accept("or", "replace")
        if word := self.one_of("temp", "temporary", "unlogged", "global", "local"):
            raise self.unsupported(f"CREATE {word.upper()}", start)
        if self.at_word("recursive"):
            raise self.unsupported("CREATE RECURSIVE VIEW", start)
        if self.accept("materialized"):
            self.expect("view")
            return self.create_view(start, materialized=True, replaced=replaced)
        if self.accept("view"):
            return self.create_view(start, materialized=False, replaced=replaced)
        if replaced:
            self.unexpected("VIEW")
        if self.accept("table"):
            return self.create_table(start)
        if self.at_word("unique"):
            raise self.unsupported("CREATE UNIQUE INDEX", start)
        if self.accept("index"):
            return self.create_index(start)
        if self.accept("sequence"):
            return self.create_sequence(start)
        if self._curr and self._curr.text.isalpha():
            self._advance()
            raise self.unsupported(f"CREATE {self._prev.text.upper()}", start)
        self.unexpected("TABLE, VIEW, MATERIALIZED VIEW, INDEX or SEQUENCE")

    def if_not_exists(self) -> bool:
        """Parse IF NOT EXISTS."""
        return self.accept("if", "not", "exists")

    # --- views and indexes

    def create_view(self, start: int, *, materialized: bool, replaced: bool) -> CreateView:
        """Parse the rest of CREATE [MATERIALIZED] VIEW."""
        optional = self.if_not_exists()
        name = self.qualified_name()
        columns = self.name_list() if self.at_symbol("(") else ()
        if self.at_word("with") or self.at_word("using") or self.at_word("tablespace"):
            raise self.unsupported(f"{self._curr.text.upper()} of a view")
        self.expect("as")
        query = self.query_tree()
        if self.at_word("with"):
            raise self.unsupported("WITH after the query of a view")
        return CreateView(name, query, columns, materialized, optional, replaced, span=self.span_from(start))

    def create_index(self, start: int) -> CreateIndex:
        """Parse the rest of CREATE INDEX."""
        if self.at_word("concurrently"):
            raise self.unsupported("CREATE INDEX CONCURRENTLY", start)
        optional = self.if_not_exists()
        name = None if self.at_word("on") else self.name()
        self.expect("on")
        table = self.qualified_name()
        if self.accept("using") and folded(self.label().name) not in ("btree", "hash", "arrangement"):
            raise self.unsupported(f"an index of kind {self._prev.text}")
        self.expect_symbol("(")
        columns = tuple(self.commas(self.index_column))
        self.expect_symbol(")")
        for word in ("include", "with", "where", "tablespace", "nulls"):
            if self.at_word(word):
                raise self.unsupported(f"{word.upper()} of an index")
        return CreateIndex(table, columns, name, optional, span=self.span_from(start))

    def index_column(self) -> SqlName:
        """Parse a column of an index; its direction has no effect, as an arrangement has no order."""
        if self.at_symbol("(") or self.at_symbol("(", 1):
            raise self.unsupported("an index on an expression")
        column = self.name()
        self.one_of("asc", "desc")
        if self.accept("nulls") and not self.one_of("first", "last"):
            self.unexpected("FIRST or LAST")
        return column

    # --- sequences

    def create_sequence(self, start: int) -> CreateSequence:
        """Parse the rest of CREATE SEQUENCE."""
        optional = self.if_not_exists()
        name = self.qualified_name()
        numbers: dict[str, int | None] = {}
        words: dict[str, object] = {}
        while self._curr:
            at = self._index
            option, value = self.sequence_option(at)
            if option in numbers or option in words:
                raise sql_failure(ParseError, "conflicting or redundant options", self.span_from(at), "42601")
            if option in ("type", "cycle", "owned"):
                words[option] = value
            else:
                numbers[option] = cast("int | None", value)
        type_ = cast(sql_types.SqlType, words.get("type", sql_types.BIGINT))
        span = self.span_from(start)
        return CreateSequence(name, type_, numbers, bool(words.get("cycle")), optional, span=span)

    def sequence_option(self, start: int) -> tuple[str, object]:
        """Parse one option of a sequence: its name and value."""
        if self.accept("as"):
            type_ = self.column_type().args["this"]
            if type_ not in SEQUENCE_TYPES:
                what = "sequence type must be smallint, integer, or bigint"
                raise sql_failure(ParseError, what, self.span_from(start), "22023")
            return "type", type_
        if self.accept("no"):
            refused = self.one_of("minvalue", "maxvalue", "cycle") or self.unexpected("MINVALUE, MAXVALUE or CYCLE")
            return refused, False if refused == "cycle" else None
        if self.accept("cycle"):
            return "cycle", True
        if self.accept("owned"):
            self.expect("by")
            if not self.accept("none"):
                raise self.unsupported("OWNED BY of a sequence", start)
            return "owned", None
        word = self.one_of("increment", "start", "minvalue", "maxvalue", "cache")
        if word is None:
            self.unexpected("an option of the sequence")
        if word in ("increment", "start"):
            self.accept("by" if word == "increment" else "with")
        number = -self.integer() if self.accept_symbol("-") else self.integer()
        if not -(2**63) <= number < 2**63:
            what = f'value "{number}" is out of range for type bigint'
            raise sql_failure(ParseError, what, self.span_from(start), "22003")
        return word, number

    # --- tables

    def create_table(self, start: int) -> CreateTable:
        """Parse the rest of CREATE TABLE."""
        optional = self.if_not_exists()
        name = self.qualified_name()
        for word in ("as", "of", "partition"):
            if self.at_word(word):
                raise self.unsupported(f"CREATE TABLE {word.upper()}", start)
        self.expect_symbol("(")
        parts = TableParts()
        if not self.at_symbol(")"):
            self.commas(lambda: self.table_item(parts))
        self.expect_symbol(")")
        for word in ("inherits", "partition", "using", "on", "tablespace", "as"):
            if self.at_word(word):
                raise self.unsupported(f"{word.upper()} of a table")
        options = self.options() if self.accept("with") else {}
        columns = tuple(replace(c, not_null=c.not_null or c.name in parts.primary_key) for c in parts.columns)
        checks, uniques = tuple(parts.checks), tuple(parts.uniques)
        span = self.span_from(start)
        return CreateTable(
            name, columns, parts.primary_key, checks, options, optional, uniques, parts.enforced, span=span
        )

    def table_item(self, parts: TableParts) -> None:
        """Parse a column or a constraint of the table."""
        if any(self.at_word(word) for word in CONSTRAINT_WORDS):
            self.table_constraint(parts)
        else:
            self.column_definition(parts)

    def table_constraint(self, parts: TableParts) -> None:
        """Parse a constraint that is not part of a column."""
        start = self._index
        name = self.name().text if self.accept("constraint") else None
        if self.accept("check"):
            parts.checks.append(self.check(name))
        elif self.accept("primary"):
            self.expect("key")
            self.set_primary_key(parts, self.name_list(), start)
            self.enforcement(parts)
        elif self.accept("unique"):
            self.nulls_distinct(start)
            parts.uniques.append(self.name_list())
        else:
            self.refuse_constraint()

    def nulls_distinct(self, start: int) -> None:
        """Parse NULLS [NOT] DISTINCT of UNIQUE: rows with null are different, unless the constraint says otherwise."""
        if self.accept("nulls"):
            if self.accept("not"):
                raise self.unsupported("UNIQUE NULLS NOT DISTINCT", start)
            self.expect("distinct")

    def set_primary_key(self, parts: TableParts, columns: tuple[SqlName, ...], start: int) -> None:
        """Remember the primary key; a table has one at most."""
        if parts.primary_key:
            where = self.span_from(start)
            raise sql_failure(ParseError, "multiple primary keys for one table are not allowed", where, "42P16")
        parts.primary_key = columns

    def enforcement(self, parts: TableParts) -> None:
        """Parse NOT ENFORCED: the key is not checked, and plans rely on it."""
        parts.enforced = not self.accept("not", "enforced")

    def check(self, name: str | None) -> CheckDefinition:
        """Parse the condition of CHECK."""
        self.expect_symbol("(")
        condition = self.expression_tree()
        self.expect_symbol(")")
        if self.accept("no", "inherit"):
            raise self.unsupported("NO INHERIT")
        return CheckDefinition(name, condition)

    def refuse_constraint(self) -> NoReturn:
        """Raise the error of a constraint that kpg does not have."""
        names = {"foreign": "FOREIGN KEY", "references": "FOREIGN KEY (REFERENCES)",
                 "exclude": "EXCLUDE", "like": "LIKE in CREATE TABLE", "collate": "COLLATE of a column",
                 "deferrable": "DEFERRABLE", "initially": "INITIALLY"}  # fmt: skip
        for word, name in names.items():
            if self.at_word(word):
                raise self.unsupported(name)
        self.unexpected("a constraint")

    def column_definition(self, parts: TableParts) -> None:
        """Parse a column: its name, type and constraints."""
        name = self.name()
        serial = folded(self._curr.text)
        if serial in SERIAL_TYPES:
            self._advance()
            column = ColumnDefinition(name, SERIAL_TYPES[serial], not_null=True, identity="by default")
        else:
            column = ColumnDefinition(name, self.column_type().args["this"])
        while not (self.at_symbol(",") or self.at_symbol(")")):
            column = self.column_constraint(parts, column)
        parts.columns.append(column)

    def column_constraint(self, parts: TableParts, column: ColumnDefinition) -> ColumnDefinition:
        """Parse one constraint of a column, and return the column with it."""
        start = self._index
        name = self.name().text if self.accept("constraint") else None
        if self.accept("not"):
            self.expect("null")
            return replace(column, not_null=True)
        if self.accept("null"):
            return column
        if self.accept("default"):
            if column.default is not None:
                self.raise_error(f'multiple default values for column "{column.name}"', self._prev)
            return replace(column, default=self.restricted_tree())
        if self.accept("check"):
            parts.checks.append(self.check(name))
            return column
        if self.accept("primary"):
            self.expect("key")
            self.set_primary_key(parts, (column.name,), start)
            self.enforcement(parts)
            return replace(column, not_null=True)
        if self.accept("unique"):
            self.nulls_distinct(start)
            parts.uniques.append((column.name,))
            return column
        if self.accept("generated"):
            return replace(column, identity=self.identity(), not_null=True)
        self.refuse_constraint()

    def identity(self) -> Literal["always", "by default"]:
        """Parse ALWAYS or BY DEFAULT AS IDENTITY."""
        start = self._index - 1
        always = self.accept("always")
        if not always:
            self.expect("by", "default")
        self.expect("as")
        if not self.accept("identity"):
            raise self.unsupported("a generated column", start)
        if self.at_symbol("("):
            raise self.unsupported("an option of IDENTITY")
        return "always" if always else "by default"

    # --- DROP

    def drop(self, start: int) -> DropStatement:
        """Parse DROP."""
        word = self.one_of("table", "view", "materialized", "index", "sequence")
        if word is None:
            if self._curr and self._curr.text.isalpha():
                self._advance()
                raise self.unsupported(f"DROP {self._prev.text.upper()}", start)
            self.unexpected("TABLE, VIEW, MATERIALIZED VIEW, INDEX or SEQUENCE")
        if word == "materialized":
            self.expect("view")
            word = "materialized view"
        optional = self.accept("if", "exists")
        names = tuple(self.commas(self.qualified_name))
        cascade = self.one_of("cascade", "restrict") == "cascade"
        kind = cast(Literal["table", "view", "materialized view", "index", "sequence"], word)
        return DropStatement(kind, names, optional, cascade, span=self.span_from(start))

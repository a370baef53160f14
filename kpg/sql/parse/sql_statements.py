"""Statements of SQL as values: what was written, before names and types are resolved.

Queries and expressions stay trees of sqlglot with their source text (`SyntaxTree`): only the binder looks inside. Names
are folded to lower case unless they were quoted. Every statement has the span of its text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sqlglot import exp

from kpg.sql.parse.spans import Span
from kpg.sql.sql_types import SqlType


@dataclass(frozen=True, slots=True, eq=False)
class SyntaxTree:
    """A query or expression as sqlglot parsed it, and the text that it came from."""

    node: exp.Expr
    span: Span

    @property
    def text(self) -> str:
        """The text of this part alone, for the catalog."""
        return self.span.text()


@dataclass(frozen=True, slots=True)
class SqlName:
    """A name that a statement mentions. Qualified names have dots only if their schema is not `public`."""

    text: str
    span: Span

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlStatement:
    """A statement and where it was written."""

    span: Span


@dataclass(frozen=True, slots=True)
class QueryStatement(SqlStatement):
    """SELECT, VALUES, TABLE or WITH. `as_of` is an epoch."""

    query: SyntaxTree
    as_of: SyntaxTree | None = None


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """A column of CREATE TABLE; its constraints on one row, and its default."""

    name: SqlName
    type: SqlType
    not_null: bool = False
    default: SyntaxTree | None = None
    identity: Literal["always", "by default"] | None = None


@dataclass(frozen=True, slots=True)
class CheckDefinition:
    """A CHECK constraint of a table or column. `name` is None if the statement names none."""

    name: str | None
    condition: SyntaxTree


@dataclass(frozen=True, slots=True)
class CreateTable(SqlStatement):
    """CREATE TABLE. `options` are those of WITH (…), as text: `retain` is "none" for a stream.

    A key that is not `enforced` is a promise: it is not checked.
    """

    name: SqlName
    columns: tuple[ColumnDefinition, ...]
    primary_key: tuple[SqlName, ...] = ()
    checks: tuple[CheckDefinition, ...] = ()
    options: Mapping[str, str] | None = None
    if_not_exists: bool = False
    uniques: tuple[tuple[SqlName, ...], ...] = ()
    enforced: bool = True


@dataclass(frozen=True, slots=True)
class CreateView(SqlStatement):
    """CREATE [MATERIALIZED] VIEW. `query.text` is the text to keep in the catalog."""

    name: SqlName
    query: SyntaxTree
    columns: tuple[SqlName, ...] = ()
    materialized: bool = False
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True, slots=True)
class CreateIndex(SqlStatement):
    """CREATE INDEX [name] ON table (columns)."""

    table: SqlName
    columns: tuple[SqlName, ...]
    name: SqlName | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateSequence(SqlStatement):
    """CREATE SEQUENCE. `numbers` are its options with a number, by name; None is NO MINVALUE or NO MAXVALUE."""

    name: SqlName
    type: SqlType
    numbers: Mapping[str, int | None]
    cycles: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropStatement(SqlStatement):
    """DROP TABLE, VIEW, MATERIALIZED VIEW, INDEX or SEQUENCE."""

    kind: Literal["table", "view", "materialized view", "index", "sequence"]
    names: tuple[SqlName, ...]
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class Returning:
    """The list of RETURNING, as a SELECT list."""

    items: tuple[SyntaxTree, ...]


@dataclass(frozen=True, slots=True)
class Assignment:
    """A column of SET and its new value; `value` is None for DEFAULT. `(a, b) = (…)` becomes one for each column.

    In `(a, b) = (SELECT …)`, `value` is the subquery, `place` the column of it, and `count` the number of columns.
    """

    column: SqlName
    value: SyntaxTree | None
    place: int | None = None
    count: int = 1


@dataclass(frozen=True, slots=True)
class OnConflict:
    """ON CONFLICT [(target)] DO NOTHING, or DO UPDATE SET assignments [WHERE condition]."""

    target: tuple[SqlName, ...]
    assignments: tuple[Assignment, ...] = ()  # none: DO NOTHING
    condition: SyntaxTree | None = None


@dataclass(frozen=True, slots=True)
class InsertStatement(SqlStatement):
    """INSERT INTO table [(columns)]. `rows` is None for DEFAULT VALUES; DEFAULT inside VALUES stays in its tree."""

    table: SqlName
    alias: SqlName | None
    columns: tuple[SqlName, ...] | None
    rows: SyntaxTree | None
    overriding: Literal["system", "user"] | None = None
    on_conflict: OnConflict | None = None
    returning: Returning | None = None


@dataclass(frozen=True, slots=True)
class UpdateStatement(SqlStatement):
    """UPDATE table SET assignments [FROM sources] [WHERE condition]. `sources` are its items, as in a query."""

    table: SqlName
    alias: SqlName | None
    assignments: tuple[Assignment, ...]
    sources: tuple[SyntaxTree, ...] = ()
    condition: SyntaxTree | None = None
    returning: Returning | None = None
    ctes: SyntaxTree | None = None


@dataclass(frozen=True, slots=True)
class DeleteStatement(SqlStatement):
    """DELETE FROM table [USING sources] [WHERE condition]."""

    table: SqlName
    alias: SqlName | None
    sources: tuple[SyntaxTree, ...] = ()
    condition: SyntaxTree | None = None
    returning: Returning | None = None
    ctes: SyntaxTree | None = None


@dataclass(frozen=True, slots=True)
class TruncateStatement(SqlStatement):
    """TRUNCATE [TABLE] names."""

    tables: tuple[SqlName, ...]
    restart_identity: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class TransactionStatement(SqlStatement):
    """BEGIN, COMMIT or ROLLBACK, with their synonyms START TRANSACTION, END and ABORT; or about a savepoint."""

    kind: Literal["begin", "commit", "rollback", "savepoint", "release", "rollback to"]
    savepoint: str = ""
    read_only: bool = False

    @property
    def ends_failure(self) -> bool:
        """Whether it is accepted in a transaction that has failed."""
        return self.kind in ("commit", "rollback", "rollback to")


@dataclass(frozen=True, slots=True)
class ExplainStatement(SqlStatement):
    """EXPLAIN [ANALYZE] [VERBOSE] or EXPLAIN (options). Names are lower case; an option without value is "true"."""

    statement: SqlStatement | None
    options: Mapping[str, str]
    view: SqlName | None = None  # of EXPLAIN MATERIALIZED VIEW, which has no statement


@dataclass(frozen=True, slots=True)
class ShowStatement(SqlStatement):
    """SHOW. `what` is its words in lower case: ("tables",), ("create", "view"), or the name of a setting.

    `of` is the name after FROM, IN or ON, or after CREATE TABLE and the like: SHOW INDEXES FROM t, SHOW CREATE VIEW v.
    """

    what: tuple[str, ...]
    of: SqlName | None = None


@dataclass(frozen=True, slots=True)
class SetStatement(SqlStatement):
    """SET name = value, or RESET. No value stands for the default; no name, in RESET ALL, for all settings."""

    name: SqlName | None
    value: str | None


@dataclass(frozen=True, slots=True)
class SubscribeStatement(SqlStatement):
    """SUBSCRIBE [TO] name or (query), WITH (SNAPSHOT, PROGRESS), AS OF and UP TO epochs. A name is a query as well."""

    query: SyntaxTree
    snapshot: bool = True
    progress: bool = False
    as_of: SyntaxTree | None = None
    up_to: SyntaxTree | None = None


@dataclass(frozen=True, slots=True)
class CopyStatement(SqlStatement):
    """COPY table [(columns)] or (query), FROM or TO a file. `path` is None for STDIN and STDOUT."""

    direction: Literal["from", "to"]
    table: SqlName | None
    columns: tuple[SqlName, ...]
    query: SyntaxTree | None
    path: str | None
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DeclareCursor(SqlStatement):
    """DECLARE name CURSOR FOR a query or SUBSCRIBE. One that is not `held` ends with its transaction."""

    name: SqlName
    statement: QueryStatement | SubscribeStatement
    held: bool = False


@dataclass(frozen=True, slots=True)
class FetchStatement(SqlStatement):
    """FETCH rows of a cursor, all if `count` is None. `timeout` is the time to wait for the first, in seconds."""

    cursor: SqlName
    count: int | None = 1
    timeout: float = 0.0
    moves: bool = False  # MOVE: the rows are passed over


@dataclass(frozen=True, slots=True)
class CloseCursor(SqlStatement):
    """CLOSE a cursor, all of the session if there is no name."""

    name: SqlName | None


@dataclass(frozen=True, slots=True)
class DiscardStatement(SqlStatement):
    """DISCARD ALL and its parts, DEALLOCATE and UNLISTEN: what a connection is reset by. `what` is the words."""

    what: tuple[str, ...]
    name: str | None = None  # of DEALLOCATE


AnyStatement: TypeAlias = (
    QueryStatement
    | CreateTable
    | CreateView
    | CreateIndex
    | CreateSequence
    | DropStatement
    | InsertStatement
    | UpdateStatement
    | DeleteStatement
    | TruncateStatement
    | TransactionStatement
    | ExplainStatement
    | ShowStatement
    | SetStatement
    | SubscribeStatement
    | CopyStatement
    | DeclareCursor
    | FetchStatement
    | CloseCursor
    | DiscardStatement
)

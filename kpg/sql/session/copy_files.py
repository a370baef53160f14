"""COPY: load a CSV or Parquet file into a table, or write a table or query to one.

Files are read and written by Arrow, column by column. A load is one epoch: all rows of the file, or none. CSV follows
PostgreSQL: an empty field without quotes is null, a quoted one is an empty string. A long load shows its progress on a
terminal. A session of a server has no files (`SqlSession.has_files`).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from kpg.columns.schema import Schema
from kpg.errors import NotAuthorised, NotSupported, ProgramError, SchemaMismatch, Unavailable
from kpg.sql.bind.bind_context import Parameters
from kpg.sql.bind.bind_statements import bind_query
from kpg.sql.catalog.entries import TableColumn, TableEntry
from kpg.sql.lower.engine_types import engine_type
from kpg.sql.parse.sql_statements import CopyStatement
from kpg.sql.relational.relations import Query
from kpg.sql.relational.scalars import Cast, Column, ColumnValue
from kpg.sql.session import sql_errors
from kpg.sql.session.evaluate_rows import evaluate_scalars
from kpg.sql.session.insert_rows import fill_defaults
from kpg.sql.session.query_result import QueryResult
from kpg.sql.session.row_tables import no_rows
from kpg.sql.session.run_query import fetch_query
from kpg.sql.session.sql_errors import sql_error
from kpg.sql.session.table_copies import scan_of
from kpg.sql.session.table_writes import (
    TableWrite,
    apply,
    check_keys,
    check_rows,
    require_table,
    schema_of_table,
)
from kpg.sql.sql_types import BIGINT, TEXT, TIMESTAMPTZ, SqlType
from kpg.terminal import ProgressBar

if TYPE_CHECKING:
    from kpg.sql.session.sql_session import SqlSession

CSV_BLOCK_BYTES: Final = 4 << 20  # read at a time: the progress bar moves after each block
FORMATS: Final = ("csv", "text", "parquet")
OPTIONS: Final = frozenset({"format", "header", "delimiter", "null", "quote", "escape", "encoding"})
TRUE_TEXTS: Final = ["t", "true", "TRUE", "True", "1", "yes", "on", "y"]
FALSE_TEXTS: Final = ["f", "false", "FALSE", "False", "0", "no", "off", "n"]
PARSED_BY_ARROW: Final = {  # types that Arrow reads from text as PostgreSQL does; others are read as text and cast
    "boolean": pa.bool_(),
    "bigint": pa.int64(),
    "double precision": pa.float64(),
    "text": pa.string(),
    "date": pa.date32(),
    "timestamp without time zone": pa.timestamp("us"),
}
WIDER: Final = {"smallint": BIGINT, "integer": BIGINT}  # read as this type, then checked by a cast


def copy(session: SqlSession, statement: CopyStatement, parameters: Parameters) -> QueryResult:
    """Carry out COPY."""
    options = CopyOptions(statement)
    if not session.has_files:
        raise sql_error(
            NotAuthorised,
            "42501",
            "a client of a server cannot COPY from or to the server's files",
            hint="Read the file on the client's side and send its rows.",
        )
    if statement.direction == "from":
        return load(session, statement, options)
    return store(session, statement, options, parameters)


class CopyOptions:
    """The options of COPY: the format by FORMAT or by the name of the file, and the details of CSV."""

    def __init__(self, statement: CopyStatement) -> None:
        given: Mapping[str, str] = {name.lower(): value for name, value in statement.options.items()}
        unknown = sorted(given.keys() - OPTIONS)
        if unknown:
            raise sql_error(
                NotSupported,
                sql_errors.NOT_SUPPORTED,
                f"COPY has no option {unknown[0].upper()}",
                hint=f"Options: {', '.join(sorted(option.upper() for option in OPTIONS))}.",
            )
        suffix = Path(statement.path or "").suffix.lower().lstrip(".")
        self.format = given.get("format", suffix if suffix in FORMATS else "text").lower()
        if self.format not in FORMATS:
            raise sql_error(
                NotSupported, sql_errors.NOT_SUPPORTED, f"COPY has no format {self.format!r}", hint="CSV or PARQUET."
            )
        is_csv = self.format == "csv"
        self.delimiter = given.get("delimiter", "," if is_csv else "\t")
        self.null = given.get("null", "" if is_csv else "\\N")
        self.quote: str | None = given.get("quote", '"') if is_csv else None
        self.escape = given.get("escape", self.quote or "\\")
        self.header = given.get("header", "false").lower() in ("true", "on", "1", "match")
        self.encoding = given.get("encoding", "utf8")


# Loading


def load(session: SqlSession, statement: CopyStatement, options: CopyOptions) -> QueryResult:
    """Carry out COPY … FROM."""
    assert statement.table is not None
    entry = require_table(session, str(statement.table))
    named = [str(name) for name in statement.columns] or [column.name for column in entry.columns]
    by_name = {column.name: column for column in entry.columns}
    missing = next((name for name in named if name not in by_name), None)
    if missing is not None:
        raise sql_error(ProgramError, sql_errors.UNDEFINED_COLUMN, f"{entry.name} has no column {missing!r}")
    columns = [by_name[name] for name in named]
    path = local_file(statement)
    try:
        raw = read_parquet(path, columns) if options.format == "parquet" else read_csv(path, columns, options)
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise sql_error(
            SchemaMismatch, sql_errors.BAD_COPY_FORMAT, f"cannot read {path}", detail=str(error).split("\n")[0]
        ) from None
    except OSError as error:
        raise sql_error(Unavailable, "58P01", f"cannot read {path}", detail=str(error)) from None
    rows = fill_defaults(session, entry, cast_columns(session, columns, raw))
    check_rows(session, entry, rows)
    schema = schema_of_table(session, entry)
    check_keys(session, entry, rows, no_rows(schema))
    apply(session, TableWrite(entry, no_rows(schema), rows))
    return QueryResult(f"COPY {rows.num_rows}")


def local_file(statement: CopyStatement) -> str:
    """Return the path of a file to copy from."""
    if statement.path is None:
        raise sql_error(
            NotSupported, sql_errors.NOT_SUPPORTED, "COPY FROM STDIN", hint="Name a file: COPY t FROM 'file.csv'."
        )
    return statement.path


def read_csv(path: str, columns: list[TableColumn], options: CopyOptions) -> pa.Table:
    """Return the columns of a CSV file, each as the type that Arrow parses for it."""
    names = [column.name for column in columns]
    reader = pacsv.open_csv(
        path,
        pacsv.ReadOptions(
            column_names=names,
            skip_rows=int(options.header),
            block_size=CSV_BLOCK_BYTES,
            encoding=options.encoding,
        ),
        pacsv.ParseOptions(
            delimiter=options.delimiter,
            quote_char=options.quote or False,
            double_quote=options.quote is not None and options.escape == options.quote,
            escape_char=False if options.escape == options.quote else options.escape,
            newlines_in_values=options.quote is not None,
        ),
        pacsv.ConvertOptions(
            column_types={column.name: parsed_type(column.type) for column in columns},
            null_values=[options.null],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            true_values=TRUE_TEXTS,
            false_values=FALSE_TEXTS,
        ),
    )
    size = Path(path).stat().st_size
    done, batches = 0, []
    with ProgressBar(sys.stderr.isatty()) as bar:
        for batch in reader:
            batches.append(batch)
            done += CSV_BLOCK_BYTES
            bar.show(f"reading {Path(path).name}", min(done, size), size)
    return pa.Table.from_batches(batches, reader.schema)


def read_parquet(path: str, columns: list[TableColumn]) -> pa.Table:
    """Return the columns of a Parquet file, matched by name if it has all names, else by position."""
    file = pq.ParquetFile(path)
    stored = file.schema_arrow.names
    wanted = [column.name for column in columns]
    lower = {name.lower(): name for name in stored}
    chosen = [lower[name] for name in wanted] if all(name in lower for name in wanted) else stored[: len(wanted)]
    if len(chosen) != len(wanted):
        raise pa.ArrowInvalid(f"The file has {len(stored)} columns, and {len(wanted)} are needed.")
    parts = []
    with ProgressBar(sys.stderr.isatty()) as bar:
        for group in range(file.num_row_groups):
            parts.append(file.read_row_group(group, columns=chosen).select(chosen).rename_columns(wanted))
            bar.show(f"reading {Path(path).name}", group + 1, file.num_row_groups)
    if parts:
        return pa.concat_tables(parts)
    return file.schema_arrow.empty_table().select(chosen).rename_columns(wanted)


def parsed_type(type_: SqlType) -> Any:
    """Return the Arrow type that a column of a CSV file is read as."""
    wider = WIDER.get(type_.name, type_)
    if wider.name == "numeric":
        return engine_type(wider).to_arrow()
    return PARSED_BY_ARROW.get(wider.name, pa.string())


def cast_columns(session: SqlSession, columns: list[TableColumn], raw: pa.Table) -> pa.Table:
    """Return the columns as the types of a table, by the casts of an assignment."""
    result = {}
    for column in columns:
        values = raw.column(column.name)
        source = read_as(column.type, values.type)
        if source is not None:
            held = Column(column.name, source)
            schema = Schema((column.name,), (engine_type(source),))
            cast = Cast(ColumnValue(held, type=source), type=column.type)
            table, _ = evaluate_scalars(session.db, [cast], [held], pa.table({column.name: values}), schema)
            values = table.column(0)
        result[column.name] = values
    return pa.table(result)


def read_as(type_: SqlType, arrow: pa.DataType) -> SqlType | None:
    """Return the type to cast from; None if the values are what the column takes."""
    if type_.name in WIDER and pa.types.is_integer(arrow):
        return BIGINT
    is_text = pa.types.is_string(arrow) or pa.types.is_large_string(arrow)
    return TEXT if is_text and (type_.name != "text") else None


# Storing


def store(session: SqlSession, statement: CopyStatement, options: CopyOptions, parameters: Parameters) -> QueryResult:
    """Carry out COPY … TO."""
    query = stored_query(session, statement, parameters)
    fetched = fetch_query(session.catalog, query)
    table = fetched.table.rename_columns(unique(query.names))
    try:
        if options.format == "parquet":
            pq.write_table(table, required_path(statement))
        else:
            types = [column.type for column in query.relation.columns[: len(query.names)]]
            write_csv(table, types, statement.path, options)
    except OSError as error:
        raise sql_error(Unavailable, "58030", f"cannot write {statement.path}", detail=str(error)) from None
    return QueryResult(f"COPY {table.num_rows}")


def stored_query(session: SqlSession, statement: CopyStatement, parameters: Parameters) -> Query:
    """Return the query whose rows COPY writes."""
    if statement.query is not None:
        return bind_query(statement.query, session.catalog, parameters, standing=False)
    assert statement.table is not None
    entry = session.catalog.entry(str(statement.table))
    if not isinstance(entry, TableEntry):
        raise sql_error(
            ProgramError,
            sql_errors.WRONG_OBJECT_TYPE,
            f"{statement.table} is not a table",
            hint=f"COPY (SELECT * FROM {statement.table}) TO …",
        )
    chosen = {str(name) for name in statement.columns} or {column.name for column in entry.columns}
    columns = tuple(column for column in entry.columns if column.name in chosen)
    reduced = TableEntry(entry.name, columns)
    return Query(scan_of(reduced), tuple(column.name for column in columns))


def required_path(statement: CopyStatement) -> str:
    """Return the path to write to."""
    if statement.path is None:
        raise sql_error(NotSupported, sql_errors.NOT_SUPPORTED, "Parquet to STDOUT", hint="Name a file.")
    return statement.path


def write_csv(table: pa.Table, types: list[SqlType], path: str | None, options: CopyOptions) -> None:
    """Write rows as CSV, or as text without quotes."""
    pairs = zip(table.columns, types, strict=True)
    texts = pa.table([text_column(column, type_) for column, type_ in pairs], names=table.column_names)
    quoting: Any = "needed" if options.quote is not None else "none"
    if options.null:
        columns: list[Any] = [column.cast(pa.string()) for column in texts.columns]
        texts = pa.table([pc.fill_null(column, options.null) for column in columns], names=texts.column_names)
    written = pacsv.WriteOptions(include_header=options.header, delimiter=options.delimiter, quoting_style=quoting)
    target: Any = sys.stdout.buffer if path is None else path
    pacsv.write_csv(texts, target, written)


def text_column(column: Any, type_: SqlType) -> Any:
    """Return a column as PostgreSQL writes it."""
    if pa.types.is_boolean(column.type):
        return pc.if_else(column, "t", "f")
    if pa.types.is_timestamp(column.type):
        text = pc.replace_substring_regex(column.cast(pa.timestamp("us")).cast(pa.string()), r"\.?0+$", "")
        return pc.binary_join_element_wise(text, "+00", "") if type_ == TIMESTAMPTZ else text
    return column


def unique(names: tuple[str, ...]) -> list[str]:
    """Return names for the columns of a file, all different."""
    result: list[str] = []
    for name in names:
        result.append(name if name not in result else f"{name}_{len(result) + 1}")
    return result

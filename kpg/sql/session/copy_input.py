"""COPY … FROM: the columns of a CSV, text or Parquet file, as values of the types of a table.

Arrow reads a file, in blocks, and parses the types that it reads as PostgreSQL does. If it refuses a value, the file is
read once more as text and cast by the casts of SQL, which accept what PostgreSQL accepts and name the line, the column
and the value that they refuse. CSV follows PostgreSQL: an empty field without quotes is null, a quoted one is an empty
string.
"""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from kpg.columns.pause_points import aside
from kpg.columns.schema import Schema
from kpg.errors import DataError, SchemaMismatch
from kpg.sql.catalog.entries import TableColumn
from kpg.sql.lower.engine_types import engine_type
from kpg.sql.relational.scalars import Cast, Column, ColumnValue
from kpg.sql.session import sql_errors
from kpg.sql.session.copy_options import CopyOptions
from kpg.sql.session.evaluate_rows import FailedRow, evaluate_scalars
from kpg.sql.session.sql_errors import sql_error
from kpg.sql.sql_types import BIGINT, TEXT, SqlType
from kpg.terminal import ProgressBar

if TYPE_CHECKING:
    from kpg.api.contracts import Database

CSV_BLOCK_BYTES: Final = 4 << 20  # read at a time: the progress bar moves after each block
MAX_SHOWN_CHARACTERS: Final = 100  # of a value in a message
TRUE_TEXTS: Final = ["t", "true", "TRUE", "True", "1", "yes", "on", "y"]
FALSE_TEXTS: Final = ["f", "false", "FALSE", "False", "0", "no", "off", "n"]
PARSED_BY_ARROW: Final = {  # types that Arrow reads from text as PostgreSQL does; others are read as text and cast
    "boolean": pa.bool_(),
    "smallint": pa.int16(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "double precision": pa.float64(),
    "date": pa.date32(),
    "timestamp without time zone": pa.timestamp("us"),
}
_ESCAPE: Final = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
_ESCAPED: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def read_columns(db: Database, path: str, table: str, columns: list[TableColumn], options: CopyOptions) -> pa.Table:
    """Return the columns of a file as the types of a table."""
    if options.format == "parquet":
        raw = read_parquet(path, columns)
        return pa.table({column.name: as_type(db, column, raw.column(column.name)) for column in columns})
    if options.match_header:
        check_header(path, columns, options)
    try:
        types = {column.name: parsed_type(column.type) for column in columns}
        raw = aside(Path(path).stat().st_size, read_text, path, columns, options, types)
        return cast_texts(db, table, columns, raw, options)
    except pa.ArrowInvalid as error:
        if "conversion error" not in str(error):
            raise
    raw = aside(Path(path).stat().st_size, read_text, path, columns, options, {})
    return cast_texts(db, table, columns, raw, options)


# CSV and text


def check_header(path: str, columns: list[TableColumn], options: CopyOptions) -> None:
    """Raise if the first line does not have the names of the columns."""
    with open(path, encoding=options.encoding, newline="") as file:
        names = next(csv.reader(file, delimiter=options.delimiter, quotechar=options.quote), [])
    wanted = [column.name for column in columns]
    if names != wanted:
        raise sql_error(
            SchemaMismatch,
            sql_errors.BAD_COPY_FORMAT,
            f"the header of {path} does not match the columns",
            detail=f"It is {', '.join(names)}; the columns are {', '.join(wanted)}.",
        )


def read_text(path: str, columns: list[TableColumn], options: CopyOptions, types: dict[str, Any]) -> pa.Table:
    """Return the columns of a file, each as a type that Arrow parses, or as text."""
    is_csv, names = options.format == "csv", [column.name for column in columns]
    if not Path(path).stat().st_size:
        return pa.table({name: pa.array([], pa.string()) for name in names})
    if is_csv and options.escape != options.quote:
        return read_escaped(path, names, options)
    positions = [str(at) for at in range(len(names))]  # for Arrow: the names of a table may be anything
    reader = pacsv.open_csv(
        path,
        pacsv.ReadOptions(
            column_names=positions, skip_rows=int(options.header), block_size=CSV_BLOCK_BYTES, encoding=options.encoding
        ),
        pacsv.ParseOptions(
            delimiter=options.delimiter,
            quote_char=options.quote if is_csv else False,
            double_quote=is_csv,
            newlines_in_values=is_csv,
            ignore_empty_lines=len(names) > 1,
        ),
        pacsv.ConvertOptions(
            column_types={at: types.get(name, pa.string()) for at, name in zip(positions, names, strict=True)},
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
    table = pa.Table.from_batches(batches, reader.schema).rename_columns(names)
    return table if is_csv else pa.table({name: unescaped(table.column(name)) for name in names})


def read_escaped(path: str, names: list[str], options: CopyOptions) -> pa.Table:
    """Return the columns of a CSV file with an escape of its own as texts. Arrow would escape outside quotes too."""
    content = Path(path).read_bytes().decode(options.encoding)
    delimiter, quote, escape = map(re.escape, (options.delimiter, options.quote, options.escape))
    field = re.compile(
        f"(?:{quote}((?:{escape}[{quote}{escape}]|[^{quote}])*){quote}|([^{delimiter}\\r\\n]*))({delimiter}|\\r?\\n|\\r|$)"
    )
    escaped = re.compile(f"{escape}([{quote}{escape}])")
    rows: list[list[str | None]] = []
    row: list[str | None] = []
    at = 0
    while at < len(content):
        match = field.match(content, at)
        if match is None:
            raise pa.ArrowInvalid(f"CSV parse error: Row #{len(rows) + 1}: a quoted field has no end.")
        quoted, plain, end = match.groups()
        row.append(escaped.sub(r"\1", quoted) if quoted is not None else None if plain == options.null else plain)
        at = match.end()
        if end != options.delimiter:
            rows.append(row)
            row = []
    wrong = next((number for number, cells in enumerate(rows, 1) if len(cells) != len(names)), None)
    if wrong is not None:
        count = len(rows[wrong - 1])
        raise pa.ArrowInvalid(f"CSV parse error: Row #{wrong}: Expected {len(names)} columns, got {count}.")
    kept = rows[int(options.header) :]
    return pa.table({name: pa.array([cells[at] for cells in kept], pa.string()) for at, name in enumerate(names)})


def unescaped(column: Any) -> Any:
    """Return texts without the backslashes of PostgreSQL's text format. Each different text is decoded once."""
    if not pa.types.is_string(column.type) or not pc.any(pc.match_substring(column, "\\")).as_py():
        return column
    encoded = column.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    texts = [None if text is None else _ESCAPE.sub(unescape, text) for text in encoded.dictionary.to_pylist()]
    return pa.chunked_array([pa.array(texts, pa.string()).take(encoded.indices)])


def unescape(escape: re.Match[str]) -> str:
    """Return what an escape stands for."""
    text = escape.group(1)
    if text[0] == "x" and len(text) > 1:
        return chr(int(text[1:], 16))
    if text[0] in "01234567":
        return chr(int(text, 8))
    return _ESCAPED.get(text, text)


def parsed_type(type_: SqlType) -> Any:
    """Return the Arrow type that a column of a file is read as."""
    if type_.name == "numeric" and type_.precision is not None:
        return engine_type(type_).to_arrow()
    return PARSED_BY_ARROW.get(type_.name, pa.string())


def cast_texts(db: Database, table: str, columns: list[TableColumn], raw: pa.Table, options: CopyOptions) -> pa.Table:
    """Return the columns that were read as text as the types of a table."""
    cast = {}
    for column in columns:
        try:
            cast[column.name] = as_type(db, column, raw.column(column.name))
        except FailedRow as failed:
            raise bad_value(table, column, raw, failed, options) from None
    return pa.table(cast)


def bad_value(table: str, column: TableColumn, raw: pa.Table, failed: FailedRow, options: CopyOptions) -> DataError:
    """Return the error for a value that does not fit its column."""
    line = failed.row + 1 + int(options.header) + newlines_before(raw, failed.row)
    value = str(raw.column(column.name)[failed.row].as_py())
    shown = value if len(value) <= MAX_SHOWN_CHARACTERS else value[:MAX_SHOWN_CHARACTERS] + "…"
    return sql_error(
        DataError, failed.error.sqlstate or sql_errors.INVALID_TEXT, failed.error.what,
        detail=f'COPY {table}, line {line:,}, column {column.name}: "{shown}".',
    )  # fmt: skip


def newlines_before(raw: pa.Table, row: int) -> int:
    """Return the number of line ends inside the values of the first rows."""
    texts: list[Any] = [column for column in raw.slice(0, row).columns if pa.types.is_string(column.type)]
    return sum(int(pc.sum(pc.count_substring(text, "\n")).as_py() or 0) for text in texts)


# Parquet


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


# Types


def as_type(db: Database, column: TableColumn, values: Any) -> Any:
    """Return values as the type of a column, by the cast of an assignment."""
    source = read_as(column.type, values)
    if source is None:
        return values
    held = Column(column.name, source)
    schema = Schema(("value",), (engine_type(source),))
    cast = Cast(ColumnValue(held, type=source), type=column.type)
    return evaluate_scalars(db, [cast], [held], pa.table([values], names=["value"]), schema)[0].column(0)


def read_as(type_: SqlType, values: Any) -> SqlType | None:
    """Return the type to cast from; None if the values are what the column takes."""
    arrow = values.type
    if pa.types.is_string(arrow) or pa.types.is_large_string(arrow):
        return None if type_.name == "text" else TEXT
    if pa.types.is_integer(arrow):
        return None if type_.name == "bigint" else BIGINT
    return None

"""COPY … TO: rows as the text that PostgreSQL writes, column by column.

Values are cast to text as the cast of SQL does. CSV quotes a field that has a delimiter, a quote or the end of a line
in it, or that reads as null; text escapes with backslashes. The cost is a pass over each column.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.compute as pc

from kpg.columns.schema import Schema
from kpg.sql.relational.scalars import Cast, Column, ColumnValue
from kpg.sql.session.copy_options import CopyOptions
from kpg.sql.session.evaluate_rows import evaluate_scalars
from kpg.sql.sql_types import TEXT, SqlType

if TYPE_CHECKING:
    from kpg.api.contracts import Database

ROWS_PER_WRITE: Final = 100_000
MAX_PLAIN_SCALE: Final = 6  # of decimals that Arrow writes without an exponent
TEXT_ESCAPES: Final = {"\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}


def write_text(
    db: Database,
    table: pa.Table,
    schema: Schema,
    names: Sequence[str],
    types: Sequence[SqlType],
    target: BinaryIO,
    options: CopyOptions,
) -> None:
    """Write rows as CSV or text to an open file."""
    if options.header:
        head = [formatted(pa.chunked_array([[name]], pa.string()), options, len(names)) for name in names]
        write_lines(head, target, options)
    for begin in range(0, table.num_rows, ROWS_PER_WRITE):
        part = table.slice(begin, ROWS_PER_WRITE)
        texts = [text_column(db, part, schema, at, type_) for at, type_ in enumerate(types)]
        write_lines([formatted(text, options, len(texts)) for text in texts], target, options)


def text_column(db: Database, table: pa.Table, schema: Schema, at: int, type_: SqlType) -> Any:
    """Return a column of rows as PostgreSQL's text; null stays null."""
    column: Any = table.column(at)
    if type_.name == "boolean":
        return pc.if_else(column, "t", "f")
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return column
    if is_written_by_arrow(column.type):
        return column.cast(pa.string())
    held = Column("value", type_)
    single = Schema(("value",), (schema.types[at],))
    cast = Cast(ColumnValue(held, type=type_), type=TEXT)
    return evaluate_scalars(db, [cast], [held], pa.table([column], names=["value"]), single)[0].column(0)


def is_written_by_arrow(type_: Any) -> bool:
    """Return whether Arrow writes values of a type as PostgreSQL does; decimals with more digits get exponents."""
    is_short = pa.types.is_decimal(type_) and 0 <= type_.scale <= MAX_PLAIN_SCALE
    return pa.types.is_integer(type_) or pa.types.is_date32(type_) or is_short


def formatted(text: Any, options: CopyOptions, width: int) -> Any:
    """Return fields as they stand in the file, with quotes or escapes where they are needed."""
    if options.format == "csv":
        special = re.escape(options.delimiter + options.quote) + "\r\n"
        needed: Any = pc.or_(pc.match_substring_regex(text, f"[{special}]"), pc.equal(text, pa.scalar(options.null)))
        if width == 1:  # PostgreSQL quotes what would read as the end of the data
            needed = pc.or_(needed, pc.equal(text, pa.scalar("\\.")))
        inner = text
        if options.escape != options.quote:
            inner = pc.replace_substring(inner, options.escape, options.escape * 2)
        inner = pc.replace_substring(inner, options.quote, options.escape + options.quote)
        quoted = pc.binary_join_element_wise(options.quote, inner, options.quote, "")
        written = pc.if_else(needed, quoted, text)
    else:
        written = text
        for character, escaped in TEXT_ESCAPES.items():
            written = pc.replace_substring(written, character, escaped)
        if options.delimiter not in TEXT_ESCAPES:
            written = pc.replace_substring(written, options.delimiter, "\\" + options.delimiter)
    return pc.fill_null(written, options.null)


def header_fields(names: Sequence[str], options: CopyOptions) -> list[str]:
    """Return the names of columns as they stand in a header."""
    columns = [formatted(pa.chunked_array([[name]], pa.string()), options, len(names)) for name in names]
    return [column[0].as_py() for column in columns]


def write_lines(columns: Sequence[Any], target: BinaryIO, options: CopyOptions) -> None:
    """Write fields as lines."""
    lines: Any = pc.binary_join_element_wise(*columns, options.delimiter) if len(columns) > 1 else columns[0]
    if len(lines):
        target.write(("\n".join(lines.to_pylist()) + "\n").encode(options.encoding))

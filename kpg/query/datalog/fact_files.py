"""Rows as text, by Soufflé's conventions: one row on each line, columns between delimiters.

    read_text(relation, FactText("edge.facts", path), text_format)      tables of rows
    lines_of(table, "\t")                                               lines of text

Arrow reads well-formed files. Others are read line by line, to find the line and the column that are wrong. The row of
a relation without columns is written as a line `()`; any line is read as it.
"""

from __future__ import annotations

import csv
import datetime
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from kpg.columns.arrow_arrays import from_list
from kpg.columns.interval import Interval
from kpg.columns.number_functions import parse_integer
from kpg.columns.schema import INTERVAL
from kpg.errors import SchemaMismatch, Unavailable
from kpg.query.datalog.io_options import TextFormat
from kpg.query.ir.program import Relation
from kpg.query.ir.terms import Kind
from kpg.query.lower.unit_input import UNIT

ARROW: dict[Kind, pa.DataType] = {
    "number": pa.int64(),
    "unsigned": pa.uint64(),
    "float": pa.float64(),
    "symbol": pa.string(),
    "bool": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "binary": pa.binary(),
    "uuid": pa.binary(16),
    "time": pa.time64("us"),
    "timestamp_ntz": pa.timestamp("us"),
    "interval": pa.month_day_nano_interval(),
    "jsonb": pa.string(),
}
READERS: dict[Kind, Callable[[str], Any]] = {
    "date": datetime.date.fromisoformat,
    "timestamp": datetime.datetime.fromisoformat,
    "binary": bytes.fromhex,
    "uuid": lambda text: UUID(text).bytes,
    "time": datetime.time.fromisoformat,
    "timestamp_ntz": datetime.datetime.fromisoformat,
    "interval": lambda text: arrow_interval(Interval.parse(text)),
}  # kinds that are read line by line
WRITE_BATCH_ROWS = 1_000_000  # bounds the memory for text to some hundred megabytes


@dataclass(frozen=True, slots=True)
class FactText:
    """A text of facts: the name that errors give it, and its file or its bytes."""

    name: str
    source: Path | bytes

    def is_empty(self) -> bool:
        """Return whether the text has no characters."""
        return not (self.source if isinstance(self.source, bytes) else self.source.stat().st_size)

    def for_arrow(self) -> Any:
        """Return what Arrow reads."""
        return pa.BufferReader(self.source) if isinstance(self.source, bytes) else self.source

    def open(self) -> IO[str]:
        """Return the text as a stream of lines."""
        if isinstance(self.source, bytes):
            return io.TextIOWrapper(io.BytesIO(self.source), encoding="utf-8", newline="")
        return self.source.open(encoding="utf-8", newline="")

    def read(self) -> str:
        """Return the whole text."""
        with self.open() as file:
            return file.read()


# --- reading ----------------------------------------------------------------------------------------------------------


def read_text(relation: Relation, text: FactText, form: TextFormat) -> Iterator[pa.Table]:
    """Yield the rows of a text as tables."""
    try:
        plain = not any(column.kind in READERS for column in relation.columns) and not splits_records(relation, form)
        if plain and len(form.delimiter) == 1 and relation.arity and (relation.arity > 1 or not text.is_empty()):
            yield from read_by_arrow(relation, text, form)
            return
    except (pa.ArrowInvalid, pa.ArrowKeyError, UnicodeDecodeError):
        pass  # a row is malformed: read line by line to find it
    try:
        yield read_by_line(relation, text, form)
    except UnicodeDecodeError as error:
        hint = "Convert the file to UTF-8."
        raise SchemaMismatch(f"{text.name} is not UTF-8 text", detail=str(error), hint=hint) from None
    except OSError as error:
        raise Unavailable(f"cannot read {text.name}", detail=str(error)) from None


def read_by_arrow(relation: Relation, text: FactText, form: TextFormat) -> Iterator[pa.Table]:
    """Yield the text as a table, read by Arrow; raise an Arrow error if a row is malformed."""
    if text.is_empty():
        return
    selected = [f"f{number}" for number in form.columns[: relation.arity]]
    types = {name: arrow_type(column.kind) for name, column in zip(selected, relation.columns, strict=True)}
    table = arrow_csv.read_csv(
        text.for_arrow(),
        read_options=arrow_csv.ReadOptions(autogenerate_column_names=True, skip_rows=int(form.headers)),
        parse_options=arrow_csv.ParseOptions(
            delimiter=form.delimiter,
            quote_char='"' if form.quoted else False,
            double_quote=form.quoted,
            escape_char=False,
            newlines_in_values=form.quoted,
            ignore_empty_lines=False,
        ),
        convert_options=arrow_csv.ConvertOptions(
            column_types=types,
            include_columns=selected,
            null_values=[],
            strings_can_be_null=False,
            quoted_strings_can_be_null=False,
        ),
    ).rename_columns([column.name for column in relation.columns])
    yield table


def read_by_line(relation: Relation, text: FactText, form: TextFormat) -> pa.Table:
    """Read the text line by line; raise SchemaMismatch with the line and column of a malformed value."""
    rows: list[list[str]] = []
    needed = max(form.columns[: relation.arity], default=-1) + 1
    with text.open() as file:
        split = split_outside_brackets if splits_records(relation, form) else str.split
        lines: Any = (
            quoted_rows(file, form.delimiter, text.name)
            if form.quoted
            else (split(line.rstrip("\n").removesuffix("\r"), form.delimiter) for line in file)
        )
        for number, fields in enumerate(lines, 1):
            if form.headers and number == 1:
                continue
            if len(fields) < needed:
                raise SchemaMismatch(
                    f"{text.name}:{number}: values are missing",
                    detail=f"Found {len(fields)} of {needed} values, separated by {form.delimiter!r}.",
                    hint="If the file has another delimiter, name it: .input r(delimiter=...).",
                )
            rows.append([fields[position] for position in form.columns[: relation.arity]])
    return table_of(relation, rows, text.name, 1 + form.headers)


def splits_records(relation: Relation, form: TextFormat) -> bool:
    """Return whether the delimiter also stands between the fields of records: only brackets then tell them apart."""
    has_records = any(column.kind not in ARROW for column in relation.columns)
    return has_records and "," in form.delimiter and not form.quoted


def split_outside_brackets(line: str, delimiter: str) -> list[str]:
    """Split a line at the delimiters outside of brackets."""
    parts, start, depth, position = list[str](), 0, 0, 0
    while position < len(line):
        if depth == 0 and line.startswith(delimiter, position):
            parts.append(line[start:position])
            position = start = position + len(delimiter)
            continue
        depth += (line[position] in "[(") - (line[position] in "])")
        position += 1
    return [*parts, line[start:]]


def quoted_rows(file: IO[str], delimiter: str, name: str) -> Iterator[list[str]]:
    """Yield the rows of a text that is quoted by RFC 4180."""
    reader = csv.reader(file, delimiter=delimiter, strict=True)
    try:
        for fields in reader:
            yield fields or [""]
    except csv.Error as error:
        raise SchemaMismatch(f"{name}:{reader.line_num}: cannot read the line", detail=str(error)) from None


def table_of(relation: Relation, rows: list[list[str]], name: str, first: int = 1) -> pa.Table:
    """Return rows of texts as a table; raise SchemaMismatch with the number of a malformed row, from `first` on."""
    if relation.arity == 0:
        return pa.table({UNIT: from_list([0] * min(1, len(rows)), pa.int64())})
    columns = [
        [
            read_value(fields[position], column.kind, f"{name}:{number}", column.name)
            for number, fields in enumerate(rows, first)
        ]
        for position, column in enumerate(relation.columns)
    ]
    pairs = zip(columns, relation.columns, strict=True)
    return pa.table({column.name: from_list(values, arrow_type(column.kind)) for values, column in pairs})


def arrow_type(kind: Kind) -> pa.DataType:
    """Return the Arrow type of the values of a kind as files hold them; records are text."""
    return ARROW.get(kind, pa.string())


def read_value(text: str, kind: Kind, where: str, name: str) -> Any:
    """Parse the text of a value; records stay text."""
    if arrow_type(kind) == pa.string():
        return text
    try:
        match kind:
            case "float":
                return float(text)
            case "bool":
                return {"true": True, "false": False, "1": True, "0": False}[text]
            case "number" | "unsigned":
                return read_integer(text, kind)
        return READERS[kind](text)
    except (ValueError, KeyError):
        raise SchemaMismatch(
            f"{where}: {text!r} is not a value of type {kind}", detail=f"It is in column {name}."
        ) from None


def read_integer(text: str, kind: Kind) -> int:
    """Return a number in decimal, hexadecimal or binary notation; raise ValueError if it is not of its kind."""
    value = parse_integer(text)
    low, high = (0, 2**64) if kind == "unsigned" else (-(2**63), 2**63)
    if not low <= value < high:
        raise ValueError(text)
    return value


# --- writing ----------------------------------------------------------------------------------------------------------


def lines_of(table: pa.Table, delimiter: str, quoted: bool = False) -> Iterator[bytes]:
    """Yield the rows of a table as lines of text, in batches."""
    if table.column_names and table.column_names[0] == UNIT:
        yield b"()\n" * min(1, table.num_rows)
        return
    for batch in table.to_batches(max_chunksize=WRITE_BATCH_ROWS):
        columns = [text_column(column, delimiter, quoted) for column in batch.columns]
        joined = pc.binary_join_element_wise(*columns, large_text(delimiter)) if len(columns) > 1 else columns[0]
        yield line_bytes(pc.binary_join_element_wise(joined, large_text(""), large_text("\n")))


def text_column(column: Any, delimiter: str, quoted: bool) -> Any:
    """Return a column as text."""
    kinds = pa.types
    if kinds.is_floating(column.type):
        return from_list([float_text(value) for value in column.to_pylist()], pa.large_string())
    if kinds.is_string(column.type) and quoted:
        return from_list([quote(value, delimiter) for value in column.to_pylist()], pa.large_string())
    if kinds.is_binary(column.type):
        return from_list([value.hex() for value in column.to_pylist()], pa.large_string())
    if column.type == pa.uuid():
        return from_list([str(value) for value in column.to_pylist()], pa.large_string())
    if column.type == pa.month_day_nano_interval():
        return from_list(list(map(str, INTERVAL.definition.arrow_to_list(INTERVAL, column))), pa.large_string())
    return column.cast(pa.large_string())


def arrow_interval(interval: Interval) -> Any:
    """Return an interval as Arrow takes it."""
    counts: Any = [interval.months, interval.days, 1000 * interval.microseconds]
    return pa.MonthDayNano(counts)  # type: ignore[call-arg]


def text_values(column: Any) -> Iterator[str]:
    """Yield the values of a column as text."""
    yield from text_column(column, "\t", False).to_pylist()


def large_text(text: str) -> Any:
    """Return a text as a scalar with 64-bit offsets, for columns of any size."""
    return from_list([text], pa.large_string())[0]


def float_text(value: float) -> str:
    """Return the shortest text of a float; integral values have no decimal point."""
    return repr(value).removesuffix(".0")


def quote(text: str, delimiter: str) -> str:
    """Quote a text by RFC 4180."""
    return '"' + text.replace('"', '""') + '"'


def line_bytes(text_column: Any) -> bytes:
    """Return the concatenation of a text column."""
    if not len(text_column):
        return b""
    offsets, data = text_column.buffers()[1:3]
    bounds = memoryview(offsets).cast("q")
    return bytes(memoryview(data)[bounds[text_column.offset] : bounds[text_column.offset + len(text_column)]])

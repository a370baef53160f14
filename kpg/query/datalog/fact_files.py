"""Read and write relations in files, by Soufflé's conventions.

    .input edge        reads   edge.facts   one row on each line, columns separated by tabs, nothing quoted
    .output path       writes  path.csv     the same, sorted by the columns from left to right
    .printsize path    prints  path<tab>row count

Options: filename, delimiter, headers, rfc4180 (quotes), and IO, which is file, or stdout for output. Numbers sort by
value; symbols sort by their first occurrence, as in Soufflé. A relation without columns is a line `()` or empty.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from kpg.errors import ProgramError, SchemaMismatch, Unavailable
from kpg.query.ir.program import Directive, Relation
from kpg.query.ir.terms import Kind
from kpg.query.lower.lower_rule import UNIT
from kpg.query.source_text import did_you_mean, failure

OPTIONS = {"IO", "filename", "delimiter", "headers", "rfc4180", "name", "operation", "attributeNames"}
ARROW: dict[Kind, pa.DataType] = {
    "number": pa.int64(),
    "unsigned": pa.int64(),
    "float": pa.float64(),
    "symbol": pa.string(),
    "bool": pa.bool_(),
}
WRITE_BATCH_ROWS = 1_000_000  # bounds the memory for text to some hundred megabytes


def check_options(directive: Directive) -> None:
    """Raise ProgramError for unknown options and unsupported kinds of storage."""
    for name, _ in directive.options:
        if name not in OPTIONS:
            raise failure(ProgramError, f"no option is called {name!r}", directive.at, hint=did_you_mean(name, OPTIONS))
    io = directive.option("IO", "file")
    allowed = ("file",) if directive.kind == "input" else ("file", "stdout", "stdoutprintsize")
    if io not in allowed:
        hint = f"IO is {' or '.join(allowed)} here."
        raise failure(ProgramError, f"IO={io} is not supported for .{directive.kind}", directive.at, hint=hint)
    if not directive.option("delimiter", "\t"):
        raise failure(ProgramError, "the delimiter is empty", directive.at, hint='As in .input r(delimiter=",").')


def file_of(directive: Directive, folder: Path, suffix: str) -> Path:
    """Return the file of a directive; a relative name is relative to the folder."""
    return folder / directive.option("filename", directive.relation + suffix)


# --- reading ----------------------------------------------------------------------------------------------------------


def read_relation(relation: Relation, directive: Directive, folder: Path) -> Iterator[pa.Table]:
    """Yield the rows of a relation's file as tables."""
    path = file_of(directive, folder, ".facts")
    if not path.is_file():
        raise Unavailable(
            f"cannot read the facts of {relation.name}: the file {path} does not exist",
            hint="Name the directory with -F, or the file with .input r(filename=...). An empty file means no facts.",
        )
    delimiter = directive.option("delimiter", "\t")
    quoted = directive.option("rfc4180", "false") == "true"
    headers = directive.option("headers", "false") == "true"
    try:
        if len(delimiter) == 1 and relation.arity and (relation.arity > 1 or path.stat().st_size):
            yield from read_by_arrow(relation, path, delimiter, quoted, headers)
            return
    except (pa.ArrowInvalid, pa.ArrowKeyError, UnicodeDecodeError):
        pass  # a row is malformed, or has more columns: read line by line to find it
    try:
        yield read_by_line(relation, path, delimiter, quoted, headers)
    except UnicodeDecodeError as error:
        hint = "Convert the file to UTF-8."
        raise SchemaMismatch(f"{path} is not UTF-8 text", detail=str(error), hint=hint) from None
    except OSError as error:
        raise Unavailable(f"cannot read {path}", detail=str(error)) from None


def read_by_arrow(relation: Relation, path: Path, delimiter: str, quoted: bool, headers: bool) -> Iterator[pa.Table]:
    """Yield the file as a table, read by Arrow; raise an Arrow error if a row is malformed."""
    if path.stat().st_size == 0:
        return
    names = [column.name for column in relation.columns]
    table = arrow_csv.read_csv(
        path,
        read_options=arrow_csv.ReadOptions(column_names=names, skip_rows=int(headers)),
        parse_options=arrow_csv.ParseOptions(
            delimiter=delimiter,
            quote_char='"' if quoted else False,
            double_quote=quoted,
            escape_char=False,
            newlines_in_values=quoted,
            ignore_empty_lines=False,
        ),
        convert_options=arrow_csv.ConvertOptions(
            column_types={column.name: ARROW[column.kind] for column in relation.columns},
            null_values=[],
            strings_can_be_null=False,
            quoted_strings_can_be_null=False,
        ),
    )
    for column in relation.columns:
        if column.kind == "unsigned" and table.num_rows and pc.min(table.column(column.name)).as_py() < 0:
            raise pa.ArrowInvalid("negative")
    yield table


def read_by_line(relation: Relation, path: Path, delimiter: str, quoted: bool, headers: bool) -> pa.Table:
    """Read the file line by line; raise SchemaMismatch with the line and column of a malformed value."""
    columns: list[list[Any]] = [[] for _ in range(max(1, relation.arity))]
    with path.open(encoding="utf-8", newline="") as file:
        lines: Any = (
            csv.reader(file, delimiter=delimiter)
            if quoted
            else (line.rstrip("\n").removesuffix("\r").split(delimiter) for line in file)
        )
        for number, fields in enumerate(lines, 1):
            if headers and number == 1:
                continue
            if relation.arity == 0:
                columns[0] += [0] if fields == ["()"] else []
                continue
            if len(fields) < relation.arity:
                raise SchemaMismatch(
                    f"{path}:{number}: values are missing",
                    detail=f"Found {len(fields)} of {relation.arity} values, separated by {delimiter!r}.",
                    hint="If the file has another delimiter, name it: .input r(delimiter=...).",
                )
            for position, column in enumerate(relation.columns):
                columns[position].append(read_value(fields[position], column.kind, f"{path}:{number}", column.name))
    if relation.arity == 0:
        return pa.table({UNIT: pa.array(columns[0][:1], pa.int64())})
    return pa.table({
        column.name: pa.array(columns[position], ARROW[column.kind]) for position, column in enumerate(relation.columns)
    })  # fmt: skip


def read_value(text: str, kind: Kind, where: str, name: str) -> Any:
    """Parse the text of a value."""
    try:
        match kind:
            case "symbol":
                return text
            case "float":
                return float(text)
            case "bool":
                return {"true": True, "false": False}[text]
        base = {"0x": 16, "0b": 2}.get(text[:2], 10)
        value = int(text[2:] if base != 10 else text, base)
        if "_" in text or not (0 if kind == "unsigned" else -(2**63)) <= value < 2**63:
            raise ValueError
    except (ValueError, KeyError):
        raise SchemaMismatch(
            f"{where}: {text!r} is not a value of type {kind}", detail=f"It is in column {name}."
        ) from None
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
        return pa.array([float_text(value) for value in column.to_pylist()], pa.large_string())
    if kinds.is_string(column.type) and quoted:
        return pa.array([quote(value, delimiter) for value in column.to_pylist()], pa.large_string())
    return column.cast(pa.large_string())


def large_text(text: str) -> Any:
    """Return a text as a scalar with 64-bit offsets, for columns of any size."""
    return pa.scalar(text, pa.large_string())


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


def write_relation(relation: Relation, directive: Directive, table: pa.Table, folder: Path, out: IO[str]) -> None:
    """Write a relation to the destination of its directive."""
    delimiter, names = directive.option("delimiter", "\t"), [column.name for column in relation.columns]
    quoted = directive.option("rfc4180", "false") == "true"
    header = delimiter.join(names) if directive.option("headers", "false") == "true" else None
    match "stdoutprintsize" if directive.kind == "printsize" else directive.option("IO", "file"):
        case "stdoutprintsize":
            out.write(f"{relation.name}\t{table.num_rows}\n")
        case "stdout":
            out.write(f"---------------\n{relation.name}\n" + (f"{header}\n" if header else "") + "===============\n")
            for lines in lines_of(table, delimiter, quoted):
                out.write(lines.decode())
            out.write("===============\n")
        case _:
            path = file_of(directive, folder, ".csv")
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("wb") as file:
                    if header:
                        file.write(f"{header}\n".encode())
                    for lines in lines_of(table, delimiter, quoted):
                        file.write(lines)
            except OSError as error:
                raise Unavailable(f"cannot write {path}", detail=str(error)) from None

"""Read and write relations where their directives say: text files, the terminal, SQLite and JSON.

    .input edge        reads   edge.facts   one row on each line, columns separated by tabs, nothing quoted
    .output path       writes  path.csv     the same, sorted by the columns from left to right
    .printsize path    prints  path<tab>row count

The options are those of kpg/query/datalog/io_options.py. Numbers sort by value; symbols sort by their first occurrence,
as in Soufflé. Modules for storage that few programs use are imported on use, so that others start faster.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pyarrow as pa

from kpg.errors import Unavailable
from kpg.query.datalog.fact_files import FactText, lines_of, read_text
from kpg.query.datalog.io_options import file_of, format_of, io_of, name_of, switch
from kpg.query.datalog.record_facts import readable
from kpg.query.ir.program import Directive, Relation

GZIP_MAGIC = b"\x1f\x8b"


def read_relation(
    relation: Relation, directive: Directive, folder: Path, missing_ok: bool = False
) -> Iterator[pa.Table]:
    """Yield the rows of a relation as tables; with `missing_ok`, a file that does not exist holds none."""
    io = io_of(directive)
    if io in ("stdin", "json"):
        text = FactText("the standard input", sys.stdin.buffer.read())
    else:
        path = file_of(directive, folder)
        if not path.is_file():
            if missing_ok:
                return
            raise Unavailable(
                f"cannot read the facts of {relation.name}: the file {path} does not exist",
                hint="Name the directory with -F, or the file with .input r(filename=...). "
                "An empty file means no facts; with -w, so does a missing one.",
            )
        if io == "sqlite":
            from kpg.query.datalog.sqlite_facts import read_sqlite

            yield read_sqlite(relation, path, name_of(directive))
            return
        text = FactText(str(path), content(path))
    if io.startswith("json"):
        from kpg.query.datalog.json_facts import json_rows

        yield json_rows(relation, text)
    else:
        yield from read_text(relation, text, format_of(directive, relation))


def content(path: Path) -> bytes | Path:
    """Return the content of a compressed file, or the path of another one."""
    try:
        with path.open("rb") as file:
            if file.read(2) != GZIP_MAGIC:
                return path
        with gzip.open(path) as unzipped:
            return unzipped.read()
    except (OSError, EOFError) as error:
        raise Unavailable(f"cannot read {path}", detail=str(error)) from None


def write_relation(relation: Relation, directive: Directive, table: pa.Table, folder: Path, out: IO[str]) -> None:
    """Write a relation to the destination of its directive."""
    io, name = io_of(directive), name_of(directive)
    match io:
        case "stdoutprintsize":
            out.write(f"{name}\t{table.num_rows}\n")
        case "stdout":
            header = header_of(relation, directive)
            out.write(f"---------------\n{name}\n{header}===============\n")
            write_lines(relation, directive, table, out)
            out.write("===============\n")
        case "json":
            from kpg.query.datalog.json_facts import write_json

            write_json(relation, table, directive.option("format", "list"), out)
        case _:
            write_file(relation, directive, table, file_of(directive, folder))


def write_file(relation: Relation, directive: Directive, table: pa.Table, path: Path) -> None:
    """Write a relation to its file."""
    io = io_of(directive)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if io == "sqlite":
            from kpg.query.datalog.sqlite_facts import write_sqlite

            write_sqlite(relation, table, path, name_of(directive))
        elif switch(directive, "compress"):
            with path.open("wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) as file:
                file.write(header_of(relation, directive).encode())
                for lines in text_lines(relation, directive, table):
                    file.write(lines)
        elif io == "jsonfile":
            from kpg.query.datalog.json_facts import write_json

            with path.open("w", encoding="utf-8") as text:
                write_json(relation, table, directive.option("format", "list"), text)
        else:
            with path.open("wb") as file:
                file.write(header_of(relation, directive).encode())
                for lines in text_lines(relation, directive, table):
                    file.write(lines)
    except OSError as error:
        raise Unavailable(f"cannot write {path}", detail=str(error)) from None


def header_of(relation: Relation, directive: Directive) -> str:
    """Return the header line, or nothing."""
    if not switch(directive, "headers"):
        return ""
    delimiter = format_of(directive, relation).delimiter
    return directive.option("attributeNames", delimiter.join(column.name for column in relation.columns)) + "\n"


def text_lines(relation: Relation, directive: Directive, table: pa.Table) -> Iterator[bytes]:
    """Yield the rows of a table as lines of text, in batches."""
    text_format = format_of(directive, relation)
    if not text_format.quoted:  # quoted records keep the quotes of their symbols, so that they can be read again
        table = readable(table, relation)
    return lines_of(table, text_format.delimiter, text_format.quoted)


def write_lines(relation: Relation, directive: Directive, table: pa.Table, out: IO[str]) -> None:
    """Write the rows of a table to a stream of text."""
    for lines in text_lines(relation, directive, table):
        out.write(lines.decode())

"""COPY over the wire: rows of the client into a table, and rows of a table or query to the client.

Rows that arrive are collected in a temporary file of bounded size, and become one epoch when the client has sent all:
a failed COPY changes nothing. Rows that leave are sent one message each, as PostgreSQL sends them; they are made column
by column. Formats: text, CSV and binary.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator
from typing import IO, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpg.errors import Closed, KpgError, OverLimit, ProtocolError
from kpg.pgwire.copy_binary import BINARY_HEADER, BINARY_TRAILER, read_binary
from kpg.pgwire.data_rows import field_lengths, fixed_bytes, joined, tuple_fields
from kpg.pgwire.statement_runner import StatementRunner
from kpg.pgwire.text_fields import text_field
from kpg.pgwire.wire_channel import WireChannel
from kpg.pgwire.wire_format import BINARY_FORMAT, COPY_DONE, TEXT_FORMAT, MessageFields, copy_response, message
from kpg.sql.parse.sql_statements import CopyStatement
from kpg.sql.session.copy_files import copied_rows, copy_target, load_columns, load_file
from kpg.sql.session.copy_options import CopyOptions
from kpg.sql.session.copy_output import formatted, header_fields
from kpg.sql.session.sql_session import SqlSession
from kpg.sql.sql_states import QUERY_CANCELED, with_sqlstate

ROWS_PER_CHUNK: Final = 2_000
COPY_HEAD: Final = np.dtype([("kind", "S1"), ("length", ">i4")])
END_MARKER: Final = b"\\."  # a line that ends the data of older clients


# From the client


async def copy_in(
    channel: WireChannel, runner: StatementRunner, statement: CopyStatement, parameters: dict[str, Any], limit: int
) -> str:
    """Carry out COPY … FROM STDIN, and return its tag."""
    target = await runner.call(lambda session: session.checked(statement, lambda: copy_target(session, statement)))
    form = BINARY_FORMAT if target.options.format == "binary" else TEXT_FORMAT
    channel.send(copy_response(b"G", len(target.columns), form))
    await channel.flush()
    with tempfile.NamedTemporaryFile(prefix="kpg-copy-") as file:
        await receive(channel, file, limit)
        if form == BINARY_FORMAT:
            file.seek(0)
            rows = await asyncio.to_thread(read_binary, file.read(), [column.type for column in target.columns])
            result = await runner.call(transacted(statement, lambda session: load_columns(session, target, rows)))
        else:
            drop_end_marker(file)
            file.flush()
            result = await runner.call(transacted(statement, lambda session: load_file(session, target, file.name)))
    return str(result.tag)


def transacted(statement: CopyStatement, load: Any) -> Any:
    """Return a function that loads rows as a statement is carried out."""
    return lambda session: session.checked(statement, lambda: load(session))


async def receive(channel: WireChannel, file: IO[bytes], limit: int) -> None:
    """Write what the client sends to a file, until it has sent all."""
    size = 0
    error: KpgError | None = None
    while True:
        kind, body = await channel.read_message()
        if kind == b"d":
            size += len(body)
            if size > limit and error is None:
                what = f"COPY has sent more than {limit:,} bytes"
                error = with_sqlstate(
                    "54000", OverLimit(what, hint="Split it, or raise the limit: kpg serve --max-copy-bytes N.")
                )
            if error is None:
                file.write(body)
        elif kind == b"c":
            if error is not None:
                raise error
            return
        elif kind == b"f":
            reason = MessageFields(body).text()
            raise with_sqlstate(QUERY_CANCELED, Closed(f"COPY from stdin failed: {reason}"))
        elif kind not in (b"H", b"S"):  # Flush and Sync are ignored, as in PostgreSQL
            raise ProtocolError("unexpected message type during COPY from stdin")


def drop_end_marker(file: IO[bytes]) -> None:
    """Remove the line that marks the end of data."""
    file.flush()
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 4))
    tail = file.read()
    for ending in (END_MARKER + b"\r\n", END_MARKER + b"\n", END_MARKER):
        if tail.endswith(ending) and (size == len(ending) or tail[: -len(ending)].endswith(b"\n")):
            file.truncate(size - len(ending))
            return


# To the client


async def copy_out(
    channel: WireChannel, runner: StatementRunner, statement: CopyStatement, parameters: dict[str, Any], limit: int
) -> str:
    """Carry out COPY … TO STDOUT, and return its tag."""

    def fetch(session: SqlSession) -> Any:
        return session.checked(statement, lambda: copied_rows(session, statement, parameters))

    options, result = await runner.call(fetch)
    is_binary = options.format == "binary"
    channel.send(copy_response(b"H", len(result.columns), BINARY_FORMAT if is_binary else TEXT_FORMAT))
    for data in binary_messages(result) if is_binary else text_messages(result, options):
        await channel.send_much(data)
        await asyncio.sleep(0)
    channel.send(COPY_DONE)
    return f"COPY {len(result)}"


def parts_of(table: pa.Table) -> Iterator[pa.Table]:
    """Yield the rows of a table, some at a time."""
    for begin in range(0, table.num_rows, ROWS_PER_CHUNK):
        yield table.slice(begin, ROWS_PER_CHUNK)


def text_messages(result: Any, options: CopyOptions) -> Iterator[bytes]:
    """Yield CopyData messages of rows as text or CSV, one message a row."""
    width = len(result.columns)
    if options.header:
        line = options.delimiter.join(header_fields([column.name for column in result.columns], options))
        yield message(b"d", line.encode() + b"\n")
    for part in parts_of(result.table):
        texts = [
            text_field(part.column(at), result.schema.types[at], column.type).cast(pa.string())
            for at, column in enumerate(result.columns)
        ]
        fields: list[Any] = [formatted(text, options, width) for text in texts]
        lines = pc.binary_join_element_wise(*fields, options.delimiter) if width > 1 else fields[0]
        yield copy_messages([pc.binary_join_element_wise(lines, "\n", "").cast(pa.large_binary())], part.num_rows)


def binary_messages(result: Any) -> Iterator[bytes]:
    """Yield CopyData messages of rows in the binary format: the header goes with the first row."""
    types = [column.type for column in result.columns]
    head = BINARY_HEADER
    for part in parts_of(result.table):
        rows = 0
        if head:
            yield message(b"d", head + joined(tuple_fields(part.slice(0, 1), result.schema, types)))
            head, rows = b"", 1
        rest = part.slice(rows)
        if rest.num_rows:
            yield copy_messages(tuple_fields(rest, result.schema, types), rest.num_rows)
    yield message(b"d", head + BINARY_TRAILER)


def copy_messages(parts: list[Any], count: int) -> bytes:
    """Return one CopyData message for each row."""
    heads = np.zeros(count, COPY_HEAD)
    heads["kind"] = b"d"
    heads["length"] = 4 + sum((np.maximum(field_lengths(part), 0) for part in parts), np.zeros(count, int))
    return joined([fixed_bytes(heads), *parts])

"""Read files of changes: transactions of row insertions and removals.

    begin
    put edge 1,2 +1
    put name 7,"O'Hara, Ann" -1
    commit                     (or abort, which discards the changes since begin)

Values are separated by commas; a symbol may stand in double quotes. Empty lines and lines that begin with # are
skipped. Rows are counted: a row that was put twice exists until it was removed twice.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kpg.errors import InputError, SchemaMismatch, Unavailable, UndefinedName
from kpg.query.datalog.fact_files import read_value
from kpg.query.datalog.record_facts import is_record, read_record, split_at_commas
from kpg.query.ir.constructors import Signatures
from kpg.query.ir.program import Relation
from kpg.query.source_text import did_you_mean


@dataclass(slots=True)
class FileTransaction:
    """Rows with diffs, by relation."""

    rows: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)
    diffs: dict[str, list[int]] = field(default_factory=dict)

    def put(self, relation: str, row: tuple[Any, ...], diff: int) -> None:
        """Add a change."""
        self.rows.setdefault(relation, []).append(row)
        self.diffs.setdefault(relation, []).append(diff)


def read_changes(path: Path, relations: dict[str, Relation], signatures: Signatures) -> Iterator[FileTransaction]:
    """Yield the committed transactions of a file, in order."""
    try:
        with path.open(encoding="utf-8") as file:
            yield from transactions(file, str(path), relations, signatures)
    except OSError as error:
        raise Unavailable(f"cannot read {path}", detail=str(error)) from None
    except UnicodeDecodeError as error:
        hint = "Convert the file to UTF-8."
        raise SchemaMismatch(f"{path} is not UTF-8 text", detail=str(error), hint=hint) from None


def transactions(
    lines: Any, name: str, relations: dict[str, Relation], signatures: Signatures
) -> Iterator[FileTransaction]:
    """Yield the committed transactions of some lines; raise InputError with the line of a malformed command."""
    current: FileTransaction | None = None
    began = number = 0
    for number, line in enumerate(lines, 1):
        command = line.strip()
        where = f"{name}:{number}"
        if not command or command.startswith("#"):
            continue
        if command == "begin":
            if current is not None:
                raise InputError(
                    f"{where}: begin inside a transaction",
                    detail=f"The transaction began in line {began}.",
                    hint="End it with commit or abort.",
                )
            current, began = FileTransaction(), number
        elif command in ("commit", "abort"):
            if current is None:
                raise InputError(f"{where}: {command} outside a transaction", hint="Begin one with: begin")
            if command == "commit":
                yield current
            current = None
        elif command.startswith(("put ", "put\t")):
            if current is None:
                raise InputError(f"{where}: put outside a transaction", hint="Begin one with: begin")
            current.put(*read_put(command[4:].strip(), where, relations, signatures))
        else:
            word = command.split()[0]
            hint = did_you_mean(word, ["begin", "put", "commit", "abort"])
            raise InputError(f"{where}: {word!r} is not a command", hint=hint)
    if current is not None:
        raise InputError(
            f"{name}:{number}: the last transaction is not committed",
            detail=f"It began in line {began}.",
            hint="End it with commit or abort.",
        )


def split_values(values: str, where: str) -> list[str]:
    """Split `1,"a, b"` into its values."""
    if '"' not in values:
        return values.split(",")
    try:
        return next(csv.reader([values], strict=True), [])
    except csv.Error as error:
        raise SchemaMismatch(f"{where}: cannot read {values!r}", detail=str(error)) from None


def read_put(
    text: str, where: str, relations: dict[str, Relation], signatures: Signatures
) -> tuple[str, tuple[Any, ...], int]:
    """Parse `edge 1,2 +1` into relation, row and diff."""
    name, _, rest = text.partition(" ")
    relation = relations.get(name)
    if relation is None:
        raise UndefinedName(
            f"{where}: no input relation is called {name!r}",
            hint=did_you_mean(name, relations) or "Only relations with .input, or without rules, can be changed.",
        )
    values, _, diff = rest.strip().rpartition(" ")
    if not values and relation.arity == 0:
        values = ""
    if diff not in ("+1", "-1", "1"):
        raise SchemaMismatch(f"{where}: a change ends with +1 or -1, not {diff!r}", hint=f"Write: put {name} a,b,c +1")
    values = values.strip()
    has_records = any(is_record(column.kind, signatures) for column in relation.columns)
    fields = split_at_commas(values) if has_records else split_values(values, where)
    if relation.arity == 0:
        return name, (0,), int(diff)
    if len(fields) != relation.arity:
        columns = ",".join(column.name for column in relation.columns)
        raise SchemaMismatch(
            f"{where}: {name} has {relation.arity} columns, not {len(fields)}",
            detail=f"Found {values!r}.",
            hint=f"Write: put {name} {columns} +1",
        )
    row = tuple(
        read_record(text.strip(), column, signatures, where)
        if is_record(column.kind, signatures)
        else read_value(text.strip() if column.kind != "symbol" else text, column.kind, where, column.name)
        for text, column in zip(fields, relation.columns, strict=True)
    )
    return name, row, int(diff)

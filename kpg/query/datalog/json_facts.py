"""Relations as JSON, in Soufflé's layout: an array of rows, each an array of values, or an object with format=object.

    [[1, "a"],
    [2, "b"]]

Input accepts both forms, also mixed. Records are nested arrays in Soufflé's files; they are read, and written as text
in the notation of text files. A relation without columns holds its row if the array is not empty.
"""

from __future__ import annotations

import json
from typing import IO, Any

import pyarrow as pa

from kpg.errors import SchemaMismatch
from kpg.query.datalog.fact_files import FactText, table_of, text_values
from kpg.query.ir.program import Relation
from kpg.query.ir.terms import NUMBERS

WRITE_BATCH_ROWS = 100_000  # bounds the memory for rows as Python objects


def json_rows(relation: Relation, text: FactText) -> pa.Table:
    """Return the rows of a JSON text."""
    try:
        rows = json.loads(text.read())
    except ValueError as error:
        raise SchemaMismatch(f"{text.name} is not JSON", detail=str(error)) from None
    if not isinstance(rows, list):
        raise SchemaMismatch(f"{text.name} holds no array of rows", hint='For example [[1, "a"], [2, "b"]].')
    if relation.arity == 0:
        return table_of(relation, [[]] * len(rows), text.name)
    return table_of(
        relation, [fields_of(relation, row, f"{text.name}: row {n}") for n, row in enumerate(rows, 1)], text.name
    )


def fields_of(relation: Relation, row: Any, where: str) -> list[str]:
    """Return the fields of a row as the texts of facts."""
    names = [column.name for column in relation.columns]
    if isinstance(row, dict):
        missing = [name for name in names if name not in row]
        if missing:
            raise SchemaMismatch(f"{where}: there is no value for {missing[0]!r}", detail=f"The row is {row!r}.")
        row = [row[name] for name in names]
    if not isinstance(row, list) or len(row) < len(names):
        raise SchemaMismatch(f"{where}: values are missing", detail=f"The row is {row!r}.")
    return [fact_text(value) for value in row[: len(names)]]


def fact_text(value: Any) -> str:
    """Return a JSON value as the text of a fact: null is nil, and arrays are records."""
    if isinstance(value, list):
        return f"[{', '.join(map(fact_text, value))}]"
    if value is None:
        return "nil"
    return value if isinstance(value, str) else json.dumps(value)


def write_json(relation: Relation, table: pa.Table, form: str, out: IO[str]) -> None:
    """Write the rows of a relation."""
    names = [json.dumps(column.name, ensure_ascii=False) for column in relation.columns]
    separator = ""
    out.write("[")
    if not names:
        out.write("null\n" * min(1, table.num_rows))
    for batch in table.to_batches(max_chunksize=WRITE_BATCH_ROWS) if names else ():
        columns = [
            [json.dumps(value, ensure_ascii=False) for value in values_of(values, column.kind)]
            for values, column in zip(batch.columns, relation.columns, strict=True)
        ]
        for row in zip(*columns, strict=True):
            if form == "object":
                pairs = ", ".join(f"{name}: {value}" for name, value in zip(names, row, strict=True))
                out.write(f"{separator}{{{pairs}}}")
            else:
                out.write(f"{separator}[{', '.join(row)}]")
            separator = ",\n"
    out.write("]\n")


def values_of(column: Any, kind: str) -> list[Any]:
    """Return the values of a column as JSON has them."""
    return list(column.to_pylist()) if kind in (*NUMBERS, "bool") else list(text_values(column))

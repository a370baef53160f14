"""Relations as JSON, in Soufflé's layout: an array of rows, each an array of values, or an object with format=object.

    [[1, "a"],
    [2, "b"]]

Input accepts both forms, also mixed. Records are nested arrays, and nil is null. Branches of algebraic types are texts
in the notation of text files. A relation without columns holds its row if the array is not empty.
"""

from __future__ import annotations

import json
import re
from typing import IO, Any

import pyarrow as pa

from kpg.columns.schema import RECORD
from kpg.errors import SchemaMismatch
from kpg.query.datalog.fact_files import FactText, table_of, text_values
from kpg.query.ir.program import Relation
from kpg.query.ir.terms import NUMBERS, Kind
from kpg.query.lower.value_expressions import column_type

SYMBOL = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
SYMBOL_OR_NIL = re.compile(rf"{SYMBOL.pattern}|nil", re.DOTALL)
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


def fact_text(value: Any, is_field: bool = False) -> str:
    """Return a JSON value as the text of a fact: null is nil, and arrays are records, with symbols in quotes."""
    if isinstance(value, list):
        return f"[{', '.join(fact_text(field, True) for field in value)}]"
    if value is None:
        return "nil"
    return value if isinstance(value, str) and not is_field else json.dumps(value, ensure_ascii=False)


def write_json(relation: Relation, table: pa.Table, form: str, out: IO[str]) -> None:
    """Write the rows of a relation."""
    names = [json.dumps(column.name, ensure_ascii=False) for column in relation.columns]
    separator = ""
    out.write("[")
    if not names:
        out.write("null\n" * min(1, table.num_rows))
    for batch in table.to_batches(max_chunksize=WRITE_BATCH_ROWS) if names else ():
        columns = [
            json_column(values, column.kind) for values, column in zip(batch.columns, relation.columns, strict=True)
        ]
        for row in zip(*columns, strict=True):
            if form == "object":
                pairs = ", ".join(f"{name}: {value}" for name, value in zip(names, row, strict=True))
                out.write(f"{separator}{{{pairs}}}")
            else:
                out.write(f"{separator}[{', '.join(row)}]")
            separator = ",\n"
    out.write("]\n")


def json_column(column: Any, kind: Kind) -> list[str]:
    """Return the values of a column as JSON: numbers, texts, and records as nested arrays."""
    if column_type(kind) == RECORD:
        return [json_record(text) for text in column.to_pylist()]
    values = column.to_pylist() if kind in (*NUMBERS, "bool") else text_values(column)
    return [json.dumps(value, ensure_ascii=False) for value in values]


def json_record(text: str) -> str:
    """Return a record as JSON; one with branches of algebraic types, for which Soufflé has no notation, as text."""
    bare = SYMBOL.sub("", text)
    if "$" in bare or "inf" in bare or "nan" in bare:
        return json.dumps(text, ensure_ascii=False)
    return SYMBOL_OR_NIL.sub(lambda match: "null" if match[0] == "nil" else match[0], text)

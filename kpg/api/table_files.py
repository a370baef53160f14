"""Read files of rows: CSV and Parquet, as Arrow tables.

Columns have the types that the caller names, or those that the file shows: of Parquet its own, of CSV the types that
fit all values. In CSV, a field without characters is null; `""` is an empty string.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath
from typing import Any

import pyarrow as pa

from kpg.columns.schema import Schema, parse_type
from kpg.errors import SchemaMismatch, Unavailable


def read_csv_table(path: str | PathLike[str], columns: Mapping[str, Any], delimiter: str = ",") -> pa.Table:
    """Return the rows of a CSV file with a header."""
    from pyarrow import csv

    types = {name: parse_type(spec).to_arrow() for name, spec in columns.items()}
    convert = csv.ConvertOptions(
        column_types=types,
        include_columns=list(columns) or None,
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        null_values=[""],
    )
    try:
        return csv.read_csv(fspath(path), parse_options=csv.ParseOptions(delimiter=delimiter), convert_options=convert)
    except FileNotFoundError:
        raise Unavailable(f"there is no file {fspath(path)!r}") from None
    except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
        raise SchemaMismatch(f"cannot read {fspath(path)!r}", detail=str(error)) from None


def read_parquet_table(path: str | PathLike[str], columns: Mapping[str, Any]) -> pa.Table:
    """Return the rows of a Parquet file, or of a directory of them."""
    from pyarrow import parquet

    try:
        table = parquet.read_table(fspath(path), columns=list(columns) or None)
    except FileNotFoundError:
        raise Unavailable(f"there is no file {fspath(path)!r}") from None
    except pa.ArrowException as error:
        raise SchemaMismatch(f"cannot read {fspath(path)!r}", detail=str(error)) from None
    missing = [name for name in columns if name not in table.column_names]
    if missing:
        raise SchemaMismatch(f"{fspath(path)!r} has no column {missing[0]!r}")
    return table


def schema_of_file(table: pa.Table, columns: Mapping[str, Any]) -> Schema | pa.Table:
    """Return the columns of an input for a table: those that the caller named, or those that the table shows."""
    return Schema.of(columns) if columns else table

"""All functions by name: scalar functions and operators, aggregates, and functions of rows.

To add a function, add its entry to the file of its subject (sql_text.py, sql_dates.py, …): its name, the types of its
parameters, its result and its computation. tests/sql/functions compares every entry with PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeVar

from kpg.sql.functions import (
    sql_aggregates,
    sql_arithmetic,
    sql_arrays,
    sql_comparison,
    sql_dates,
    sql_json,
    sql_math,
    sql_sequences,
    sql_text,
    table_functions,
)
from kpg.sql.functions.function import AggregateFunction, Function, TableFunction

Entry = TypeVar("Entry", Function, AggregateFunction, TableFunction)


def _by_name(entries: Iterable[Entry]) -> dict[str, tuple[Entry, ...]]:
    overloads_of: dict[str, list[Entry]] = {}
    for entry in entries:
        overloads_of.setdefault(entry.name, []).append(entry)
    return {name: tuple(overloads) for name, overloads in overloads_of.items()}


_SUBJECTS: Final = (sql_arithmetic, sql_comparison, sql_text, sql_math, sql_dates, sql_json, sql_arrays, sql_sequences)

SCALAR_FUNCTIONS: Final = _by_name(entry for subject in _SUBJECTS for entry in subject.FUNCTIONS)
AGGREGATES: Final = _by_name(sql_aggregates.AGGREGATES)
TABLE_FUNCTIONS: Final = _by_name(table_functions.TABLE_FUNCTIONS)

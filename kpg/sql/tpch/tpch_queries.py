"""The text of the 22 queries, and the tables and columns that each reads."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from kpg.sql.tpch.tpch_tables import COLUMNS

NUMBERS = range(1, 23)
NAME = re.compile(r"\w+")


@cache
def query_text(number: int) -> str:
    """Return the text of a query: 1 to 22."""
    return files("kpg.sql.tpch").joinpath(f"q{number:02}.sql").read_text().strip()


@cache
def columns_read(number: int) -> dict[str, tuple[str, ...]]:
    """Return the tables that a query reads, with the columns that it reads of each, in the order of the table."""
    names = set(NAME.findall(query_text(number)))
    columns_of = {table: tuple(column for column in columns if column in names) for table, columns in COLUMNS.items()}
    return {table: columns for table, columns in columns_of.items() if columns}

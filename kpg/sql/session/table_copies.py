"""The number of copies of rows in a table without a primary key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kpg.sql.catalog.entries import TableEntry
from kpg.sql.relational.relations import Scan
from kpg.sql.relational.scalars import Column
from kpg.sql.session.row_tables import key_numbers
from kpg.sql.session.sql_transaction import fetch_target_rows

if TYPE_CHECKING:
    from kpg.sql.session.sql_session import SqlSession


def copies_of(session: SqlSession, entry: TableEntry, rows: pa.Table) -> npt.NDArray[np.int64]:
    """Return how often a table has each of some different rows. Reads the whole table."""
    whole = fetch_target_rows(session, scan_of(entry), entry).table
    schema = session.db.inputs[entry.name].schema
    named = whole.rename_columns(list(schema.names))
    wanted, present = key_numbers(schema, [rows, named], schema.names, session.db.symbols)
    counts = np.bincount(present, minlength=int(max(wanted.max(initial=0), present.max(initial=0))) + 1)
    return counts[wanted]


def scan_of(entry: TableEntry) -> Scan:
    """Return the relation of all rows of a table."""
    columns = tuple(Column(column.name, column.type) for column in entry.columns)
    return Scan(columns, entry.name, tuple(column.name for column in entry.columns))

"""The unit input of a db: a relation with one row and one column, from which constants are computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kpg.columns.schema import Schema

if TYPE_CHECKING:
    from kpg.api.contracts import Database, Input

UNIT: Final = " unit"  # the only column of rows without columns
UNIT_INPUT: Final = "unit of queries"  # the name of the input


def unit_input(db: Database) -> Input:
    """Return the input with one row; the row is inserted when it is first asked for."""
    existing = db.inputs.get(UNIT_INPUT)
    if existing is None:
        existing = db.input(UNIT_INPUT, Schema.of({UNIT: int}), keep_on_disk=False)
        existing.insert([(0,)])
    return existing

"""Ways to write the `build` of a function."""

from __future__ import annotations

from collections.abc import Sequence

from kpg.columns.expression import Expression
from kpg.errors import KpgError
from kpg.sql.sql_types import SqlType


def pending(arguments: Sequence[Expression], types: Sequence[SqlType], result: SqlType) -> Expression:
    """Refuse a function that has a signature, but no computation."""
    raise KpgError(f"a function that returns {result} is not supported")

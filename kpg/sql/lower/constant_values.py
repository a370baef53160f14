"""The values of scalars that must be known when a query is planned, as those of LIMIT and OFFSET."""

from __future__ import annotations

from typing import Any

from kpg.errors import BadPlan
from kpg.sql.relational.scalars import Cast, Constant, Scalar


def constant_value(scalar: Scalar | None) -> Any:
    """Return the value of a constant; None for null or for no scalar."""
    while isinstance(scalar, Cast):
        scalar = scalar.argument
    if scalar is None:
        return None
    if not isinstance(scalar, Constant):
        raise BadPlan("LIMIT and OFFSET take constants and parameters")
    return None if scalar.value is None else int(scalar.value)

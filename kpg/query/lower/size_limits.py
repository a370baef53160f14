"""Stop a recursion when one of its relations has reached a size: `.limitsize r(n=100)`.

    relations of round i + 1  =  those of round i, and if no limit is reached, the rows that the rules derive from them

The limit is soft, as in Soufflé: a round may derive more rows than are missing. It holds for all relations of the
recursion, also while inputs change. Each limited relation is counted in each round, at the cost of its changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kpg.columns.functions import col, lit

if TYPE_CHECKING:
    from kpg.api.collection import Collection

REACHED = " reached"  # a column that no relation of a program can have
ROWS = " rows"


def with_size_limits(
    definitions: Mapping[str, Collection], variables: Mapping[str, Collection], limits: Mapping[str, int]
) -> dict[str, Collection]:
    """Return the definitions of a loop's variables, which change no more once a limit is reached."""
    full = [
        variables[name].select(**{REACHED: lit(0)}).count(REACHED, name=ROWS).filter(col(ROWS) >= rows).select(REACHED)
        for name, rows in limits.items()
    ]
    reached = full[0].concat(*full[1:]).distinct()
    limited = {}
    for name, definition in definitions.items():
        derived = definition.with_columns(**{REACHED: lit(0)}).antijoin(reached, on=REACHED)
        limited[name] = derived.select(*definition.schema.names).concat(variables[name]).distinct()
    return limited

"""Demand: a query with bound arguments computes only the rows it needs, and its arguments are rows of an input."""

from kpg.query.demand.magic_sets import CombinedMagicProgram, MagicProgram, magic_sets, magic_sets_together
from kpg.query.demand.output_demand import RestrictedProgram, demand_from_outputs
from kpg.query.demand.row_counts import InputCounts

__all__ = [
    "CombinedMagicProgram",
    "InputCounts",
    "MagicProgram",
    "RestrictedProgram",
    "demand_from_outputs",
    "magic_sets",
    "magic_sets_together",
]

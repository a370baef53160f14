"""Demand: a query with bound arguments computes only the rows it needs, and its arguments are rows of an input."""

from kpg.query.demand.magic_sets import CombinedMagicProgram, MagicProgram, magic_sets, magic_sets_together

__all__ = ["CombinedMagicProgram", "MagicProgram", "magic_sets", "magic_sets_together"]

"""Demand: a query with bound arguments computes what they need, and the arguments are rows of an input."""

from kpg.query.demand.demanded import Demanded, Together, demanded, demanded_together

__all__ = ["Demanded", "Together", "demanded", "demanded_together"]

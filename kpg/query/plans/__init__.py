"""Plans in JSON, as clients send them over the wire."""

from kpg.query.plans.rules import parse_plans

__all__ = ["parse_plans"]

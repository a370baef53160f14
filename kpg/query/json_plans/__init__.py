"""Plans in JSON, as clients send them over the wire."""

from kpg.query.json_plans.plan_rules import parse_plans

__all__ = ["parse_plans"]

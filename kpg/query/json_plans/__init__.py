"""Plans in JSON, as clients of 3DF send them."""

from kpg.query.json_plans.plan_rules import parse_plans

__all__ = ["parse_plans"]

"""Experiments with queries at run time: recursion, worst-case optimal joins, tenants, demand (Q1 to Q7)."""

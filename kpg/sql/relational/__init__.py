"""The bound relational algebra: queries whose names and types are resolved (see kpg/sql/relational/relations.py)."""

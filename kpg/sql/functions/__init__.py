"""PostgreSQL's operators, functions and aggregates as tables, and how each is computed over columns."""

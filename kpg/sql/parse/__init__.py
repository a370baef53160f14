"""SQL text as statements: sqlglot parses PostgreSQL's syntax, this package what it lacks; the rest is refused."""

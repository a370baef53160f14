"""Names, types and coercions: syntax trees become bound relational algebra, by PostgreSQL's rules."""

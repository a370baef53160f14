"""SQL in PostgreSQL's dialect: tables, standing views and one-off queries on the arrangements of a db.

    text → parse/ → bind/ → relational/ (bound algebra) → rewrites/ → lower/ → collections of kpg/api

One planner serves standing and one-off queries. Tables are relations of the db, so Datalog, EDN and Python read them.
"""

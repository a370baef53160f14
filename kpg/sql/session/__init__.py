"""Sessions: execute SQL statements on a db (see kpg/sql/session/sql_session.py)."""

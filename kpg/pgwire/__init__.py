"""PostgreSQL's wire protocol 3.0: lets PostgreSQL's clients ask a server of kpg (see kpg/pgwire/pg_session.py)."""

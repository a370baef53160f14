"""Queries as text: Datalog and EDN become one IR, the IR becomes collections."""

"""Queries as text: Datalog, EDN and JSON plans are parsed into one IR, and the IR is lowered to collections."""

"""The shell: statements in Datalog and EDN against a server, or a db of its own, on a terminal or in scripts."""

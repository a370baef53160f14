"""`kpg shell`: a terminal to a server, or to a db of its own."""

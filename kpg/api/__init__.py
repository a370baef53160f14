"""The public API: the db, its inputs and outputs, collections and arrangements."""

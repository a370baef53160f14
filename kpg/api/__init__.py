"""What people type: the db, its inputs and outputs, collections and arrangements."""

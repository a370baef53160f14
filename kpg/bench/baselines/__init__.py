"""Single-purpose, single-threaded, compiled programs: the papers compare batch graph processing with them."""

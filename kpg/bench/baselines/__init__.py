"""Single-threaded programs for one purpose, compiled: what the papers compare batch graph processing with."""

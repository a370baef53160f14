"""Plans: collections as immutable descriptions, and their rendering into the operators of a dataflow."""

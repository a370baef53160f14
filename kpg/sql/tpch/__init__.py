"""TPC-H: the eight tables, the 22 queries of the specification with its validation parameters, and generated data."""

"""Graphs of operators, and the workers that run them. Knows nothing of traces."""

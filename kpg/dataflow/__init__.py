"""Graphs of operators, and the workers that run them. Independent of traces."""

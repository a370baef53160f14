"""Lowering: the bound algebra, after its rewrites, as collections of the engine."""

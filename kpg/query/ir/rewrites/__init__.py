"""Rewrites of programs, one function in each file; `kpg/query/ir/compile.py` applies them in order."""

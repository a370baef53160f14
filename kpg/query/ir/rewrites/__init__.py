"""Rewrites of programs, one function a file; `kpg/query/ir/compile.py` says their order."""

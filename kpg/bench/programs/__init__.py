"""Datalog programs that experiments run, as files: `load("dataflow")` compiles dataflow.dl.

`kpg run` takes the same files.
"""

from __future__ import annotations

from pathlib import Path

from kpg.query.datalog.parser import parse_file
from kpg.query.ir.compile import compile
from kpg.query.ir.program import Program


def load(name: str) -> Program:
    """Return the compiled program of a file, by its name without suffix."""
    return compile(parse_file(path(name)))


def path(name: str) -> Path:
    """Return the path of a program's file."""
    return Path(__file__).parent / f"{name}.dl"

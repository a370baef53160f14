"""Datalog programs that experiments run, as files: `load("dataflow")` is dataflow.dl, compiled.

`kpg run` takes the same files.
"""

from __future__ import annotations

from pathlib import Path

from kpg.query.datalog.parser import parse_file
from kpg.query.ir.compile import compile
from kpg.query.ir.program import Program


def load(name: str) -> Program:
    """A program by the name of its file."""
    return compile(parse_file(path(name)))


def path(name: str) -> Path:
    """Where the file is."""
    return Path(__file__).parent / f"{name}.dl"

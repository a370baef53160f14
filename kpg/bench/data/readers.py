"""Readers of the public formats, so that who has the originals can use them.

    read_snap(path)        edge lists of snap.stanford.edu: two numbers a line, comments with #
    read_graspan(path)     two numbers and a label a line; {"n": ..., "e": ...} or {"a": ..., "d": ...}
    read_ldbc(path)        a csv of LDBC's generator: a header, columns separated by |

Files may be compressed with gzip (.gz). What is not such a file is an `InputError` with its line. `write_graspan` and
`write_snap` write what these read.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa

from kpg.bench.data.graphs import Ints
from kpg.errors import InputError, Unavailable


def read_snap(path: Path) -> Ints:
    """Edges int64[n, 2]."""
    edges = []
    with opened(path) as file:
        for number, line in enumerate(file, 1):
            if line.startswith("#") or not line.strip():
                continue
            edges.append(ends(path, number, line.split()))
    return np.array(edges, np.int64).reshape(-1, 2)


def read_graspan(path: Path) -> dict[str, Ints]:
    """Edges by label, int64[n, 2] each."""
    found: dict[str, list[tuple[int, int]]] = {}
    with opened(path) as file:
        for number, line in enumerate(file, 1):
            parts = line.split()
            if not parts:
                continue
            if len(parts) != 3:
                raise malformed(path, number, line, "two numbers and a label")
            found.setdefault(parts[2], []).append(ends(path, number, parts[:2]))
    return {label: np.array(edges, np.int64) for label, edges in found.items()}


def read_ldbc(path: Path) -> pa.Table:
    """A table with the columns of the header, typed by what is in them."""
    from pyarrow import csv

    try:
        return csv.read_csv(path, parse_options=csv.ParseOptions(delimiter="|"))
    except FileNotFoundError as error:
        raise Unavailable(f"there is no file {path}") from error
    except pa.ArrowInvalid as error:
        raise InputError(f"{path} is not a csv of LDBC", detail=str(error)) from error


def write_snap(path: Path, edges: Ints) -> None:
    """An edge list."""
    np.savetxt(path, edges, fmt="%d", delimiter="\t", header=f"Nodes and edges: {len(edges)} edges")


def write_graspan(path: Path, **edges: Ints) -> None:
    """Edges with their labels."""
    with path.open("w") as file:
        for label, each in edges.items():
            file.writelines(f"{a}\t{b}\t{label}\n" for a, b in each.tolist())


def opened(path: Path) -> IO[str]:
    """A file of text, unpacked if it is compressed."""
    try:
        return gzip.open(path, "rt") if path.suffix == ".gz" else path.open()
    except OSError as error:
        raise Unavailable(f"cannot read {path}", detail=str(error)) from error


def ends(path: Path, number: int, parts: list[str]) -> tuple[int, int]:
    """The two nodes of a line."""
    try:
        source, target = map(int, parts)
    except ValueError as error:
        raise malformed(path, number, " ".join(parts), "two numbers") from error
    return source, target


def malformed(path: Path, number: int, line: str, expected: str) -> InputError:
    """The error for a line that is something else."""
    return InputError(f"{path}:{number}: not {expected}", detail=f"Found {line.strip()[:80]!r}.")

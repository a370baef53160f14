"""Readers of public file formats, for users who have the original data.

    read_snap(path)        edge lists of snap.stanford.edu: two numbers a line, comments with #
    read_graspan(path)     two numbers and a label a line; {"n": ..., "e": ...} or {"a": ..., "d": ...}
    read_ldbc(path)        a csv of LDBC's generator: a header, columns separated by |

Files may be compressed with gzip (.gz). A file in another format raises `InputError` with the line. `write_graspan` and
`write_snap` write these formats. Columns separated by single tabs or blanks are read at some ten million lines a
second; other files are read line by line, which also finds a wrong line.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
from pyarrow import csv

from kpg.bench.data.graphs import Ints
from kpg.errors import InputError, Unavailable

GZIP_MAGIC = b"\x1f\x8b"
SAMPLE_BYTES = 1 << 16  # of a file, to estimate its number of lines


def read_snap(path: Path) -> Ints:
    """Read an edge list as int64[n, 2]; it must have an edge."""
    table = read_columns(path, ["a", "b"])
    if table is not None:
        return not_empty(path, np.stack([table["a"].to_numpy(), table["b"].to_numpy()], axis=1))
    edges = []
    with open_text(path) as file:
        for number, line in enumerate(file, 1):
            if line.startswith("#") or not line.strip():
                continue
            edges.append(ends(path, number, line.split()))
    return not_empty(path, np.array(edges, np.int64).reshape(-1, 2))


def read_graspan(path: Path, *labels: str) -> dict[str, Ints]:
    """Read edges by label, int64[n, 2] each; the file must have the given labels."""
    edges = by_label(path)
    for label in labels:
        if label not in edges:
            present = ", ".join(sorted(edges)[:10]) or "none"
            raise InputError(
                f"{path} has no edges with label {label}",
                detail=f"Its labels: {present}.",
                hint="A dataflow graph (X20) has labels e and n, a points-to graph (X21) a and d.",
            )
    return edges


def by_label(path: Path) -> dict[str, Ints]:
    """Read all edges of a file, by label."""
    table = read_columns(path, ["a", "b", "label"])
    if table is not None:
        edges, names = np.stack([table["a"].to_numpy(), table["b"].to_numpy()], axis=1), table["label"].to_numpy()
        return {str(label): not_empty(path, edges[names == label]) for label in np.unique(names)}
    pairs: dict[str, list[tuple[int, int]]] = {}
    with open_text(path) as file:
        for number, line in enumerate(file, 1):
            parts = line.split()
            if not parts:
                continue
            if len(parts) != 3:
                raise malformed(path, number, line, "two numbers and a label")
            pairs.setdefault(parts[2], []).append(ends(path, number, parts[:2]))
    return {label: np.array(edges, np.int64) for label, edges in pairs.items()}


def read_columns(path: Path, names: list[str]) -> pa.Table | None:
    """Read the columns of a regular file; return None if a line differs, or a number is negative."""
    with open_text(path) as file:
        skipped, line = 0, ""
        for line in file:
            if not line.startswith("#"):
                break
            skipped += 1
    types = {name: pa.string() if name == "label" else pa.int64() for name in names}
    try:
        table = csv.read_csv(
            path,
            csv.ReadOptions(column_names=names, skip_rows=skipped),
            csv.ParseOptions(delimiter="\t" if "\t" in line else " ", ignore_empty_lines=True),
            csv.ConvertOptions(column_types=types, strings_can_be_null=False),
        )
    except (pa.ArrowInvalid, OSError):
        return None
    is_regular = table.num_rows and not any(column.null_count for column in table.columns)
    return table if is_regular and min(table["a"].to_numpy().min(), table["b"].to_numpy().min()) >= 0 else None


def not_empty(path: Path, edges: Ints) -> Ints:
    """Return the edges; raise if there are none."""
    if not len(edges):
        raise InputError(f"{path} has no edges", hint="Lines with # are comments.")
    return edges


def estimated_lines(path: Path) -> int:
    """Estimate the number of lines of a file from its size and the length of its first lines."""
    with open_text(path) as file:
        sample = file.read(SAMPLE_BYTES)
    lines = sample.count("\n")
    if len(sample) < SAMPLE_BYTES or not lines:
        return lines
    packed = len(gzip.compress(sample.encode())) if path.suffix == ".gz" else len(sample.encode())
    return round(path.stat().st_size * lines / packed)


def read_ldbc(path: Path) -> pa.Table:
    """Read a table with the columns of the header, with inferred types; quotes have no meaning."""
    try:
        table = csv.read_csv(path, parse_options=csv.ParseOptions(delimiter="|", quote_char=False))
    except FileNotFoundError as error:
        raise Unavailable(f"there is no file {path}") from error
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"{path} is not a csv of LDBC", detail=str(error)) from error
    if table.num_columns < 2:
        raise InputError(f"{path} is not a csv of LDBC", detail=f"Its header has no |: {table.column_names[0]!r}.")
    return table


def write_snap(path: Path, edges: Ints) -> None:
    """Write an edge list."""
    np.savetxt(path, edges, fmt="%d", delimiter="\t", header=f"Nodes and edges: {len(edges)} edges")


def write_graspan(path: Path, **edges: Ints) -> None:
    """Write edges with their labels."""
    with path.open("w") as file:
        for label, pairs in edges.items():
            file.writelines(f"{a}\t{b}\t{label}\n" for a, b in pairs.tolist())


def open_text(path: Path) -> IO[str]:
    """Open a text file, decompressed if necessary. Invalid characters are replaced, and no format accepts those."""
    try:
        if path.suffix != ".gz":
            return path.open(errors="replace")
        with path.open("rb") as file:
            if file.read(2) != GZIP_MAGIC:
                raise InputError(f"{path} is not compressed with gzip, as its name says")
        return gzip.open(path, "rt", errors="replace")
    except OSError as error:
        raise Unavailable(f"cannot read {path}", detail=str(error)) from error


def ends(path: Path, number: int, parts: list[str]) -> tuple[int, int]:
    """Parse the two nodes of a line."""
    try:
        source, target = map(int, parts)
    except ValueError as error:
        raise malformed(path, number, " ".join(parts), "two numbers") from error
    if not (0 <= source < 1 << 63 and 0 <= target < 1 << 63):
        raise malformed(path, number, " ".join(parts), "two numbers of nodes, from 0")
    return source, target


def malformed(path: Path, number: int, line: str, expected: str) -> InputError:
    """Return the error of a line in another format."""
    return InputError(f"{path}:{number}: not {expected}", detail=f"Found {line.strip()[:80]!r}.")

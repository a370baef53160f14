"""Helpers of the storage tests: copies of directories, damage to files, and small transactions."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from kpg.algebra.frontier import Frontier
from kpg.columns.schema import Schema
from kpg.columns.symbols import Symbols
from kpg.columns.table_rows import decode, encode
from kpg.columns.updates import Updates, constant, spread
from kpg.storage.checkpoint import RelationContent
from kpg.storage.record import Origin, Transaction
from kpg.storage.storage import Recovered, Storage

EDGES = Schema.of({"src": int, "name": str})
_copy_numbers = itertools.count()


def copy_of(directory: str | os.PathLike[str]) -> Path:
    """Return a copy of a directory: what a crash at this moment would leave."""
    source = Path(directory)
    target = source.parent / f"{source.name}.{next(_copy_numbers)}"
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("LOCK"))
    return target


def files_of(directory: Path, pattern: str) -> list[Path]:
    """Return the files of a directory that match a pattern, sorted by name."""
    return sorted(directory.glob(pattern))


def flip(path: Path, offset: int) -> None:
    """Damage one byte of a file."""
    data = bytearray(path.read_bytes())
    data[offset] ^= 0xFF
    path.write_bytes(bytes(data))


def change(rows: list[tuple[int, str]], epoch: int, symbols: Symbols, diff: int = 1) -> Updates:
    """Return updates of EDGES at one epoch."""
    return Updates(encode(EDGES, rows, symbols), constant((epoch,)), constant((diff,)))


def commit(
    storage: Storage, symbols: Symbols, epoch: int, rows: list[tuple[int, str]], batch: int | None = None
) -> bool:
    """Write a transaction on the first relation as the engine does; return False if its batch was applied before."""
    origins = () if batch is None else (Origin("writer", batch),)
    if origins and origins[0] in storage.applied:
        return False
    changes = ((1, change(rows, epoch, symbols)),)
    storage.sync(storage.append(Transaction(Frontier.at((epoch + 1,)), changes, origins), symbols))
    return True


def checkpoint(storage: Storage, symbols: Symbols, contents: Mapping[str, RelationContent] | None = None) -> int:
    """Write a checkpoint, and wait for it; return the number of new files."""
    written = storage.begin_checkpoint(contents or {}, symbols).written
    storage.end_checkpoint()
    return written.result()


def rows_of(recovered: Recovered, symbols: Symbols, name: str = "edges") -> list[tuple[int, str]]:
    """Return the recovered rows of a relation, each as often as its count says."""
    relation = recovered.relations[name]
    counts: dict[tuple[int, str], int] = {}
    for updates in [*(batch.updates for batch in relation.batches), *relation.later]:
        rows = decode(relation.ordered, updates.data, symbols).select(list(relation.schema.names)).to_pylist()
        for row, diff in zip(rows, spread(updates.diffs, len(updates))[0].tolist(), strict=True):
            key = tuple(row.values())
            counts[key] = counts.get(key, 0) + diff  # type: ignore[index, arg-type]
    return sorted(row for row, count in counts.items() for _ in range(count))

"""What tests of storage share: directories as they were at a moment, and small transactions."""

from __future__ import annotations

import itertools
import os
import shutil
from pathlib import Path

from kpg.algebra.frontier import Frontier
from kpg.columns.schema import Schema
from kpg.columns.symbols import Symbols
from kpg.columns.table_rows import decode, encode
from kpg.columns.updates import Updates, constant, spread
from kpg.storage.record import Origin, Transaction
from kpg.storage.storage import Recovered, Storage

EDGES = Schema.of({"src": int, "name": str})
_numbers = itertools.count()


def copy_of(place: str | os.PathLike[str]) -> Path:
    """The directory as a crash at this moment would leave it."""
    where = Path(place)
    made = where.parent / f"{where.name}.{next(_numbers)}"
    shutil.copytree(where, made, ignore=shutil.ignore_patterns("LOCK"))
    return made


def files_of(place: Path, pattern: str) -> list[Path]:
    """The files of a directory that match, in the order of their names."""
    return sorted(place.glob(pattern))


def flip(path: Path, at: int) -> None:
    """Damage one byte."""
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.write_bytes(bytes(data))


def change(rows: list[tuple[int, str]], epoch: int, symbols: Symbols, diff: int = 1) -> Updates:
    """Rows of EDGES, at one epoch."""
    return Updates(encode(EDGES, rows, symbols), constant((epoch,)), constant((diff,)))


def commit(
    storage: Storage, symbols: Symbols, epoch: int, rows: list[tuple[int, str]], batch: int | None = None
) -> bool:
    """One transaction on the first relation."""
    origins = () if batch is None else (Origin("writer", batch),)
    changes = ((1, change(rows, epoch, symbols)),)
    return storage.commit(Transaction(Frontier.at((epoch + 1,)), changes, origins), symbols)


def rows_of(found: Recovered, symbols: Symbols, name: str = "edges") -> list[tuple[int, str]]:
    """The rows of a relation as recovered, each as often as it is there."""
    relation = found.relations[name]
    counts: dict[tuple[int, str], int] = {}
    for updates in [*(batch.updates for batch in relation.batches), *relation.later]:
        rows = decode(relation.ordered, updates.data, symbols).select(list(relation.schema.names)).to_pylist()
        for row, diff in zip(rows, spread(updates.diffs, len(updates))[0].tolist(), strict=True):
            key = tuple(row.values())
            counts[key] = counts.get(key, 0) + diff  # type: ignore[index, arg-type]
    return sorted(row for row, count in counts.items() for _ in range(count))

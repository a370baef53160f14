"""Relations in SQLite databases, in Soufflé's layout.

    __SymbolTable(id, symbol)     each symbol once, for all relations of the database
    _edge("0", "1")               the rows: numbers, and ids of symbols
    edge(x, y)                    a view of the rows with their symbols

Output replaces the rows of its relation and keeps the other tables of the database. Input reads any table or view with
the name of the relation; its first columns count. Floats are stored as floats. Values of other types, such as records,
are stored as symbols, in the notation of text files. A relation without columns has one row, or none.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa

from kpg.errors import SchemaMismatch, Unavailable
from kpg.query.datalog.fact_files import table_of, text_values
from kpg.query.ir.program import Relation
from kpg.query.ir.terms import NUMBERS, Kind

SYMBOLS = "__SymbolTable"
MISSING = "n/a"  # what Soufflé reads for NULL
WRITE_BATCH_ROWS = 100_000  # bounds the memory for rows as Python objects


def quoted(name: str) -> str:
    """Return a name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


# --- reading ----------------------------------------------------------------------------------------------------------


def read_sqlite(relation: Relation, path: Path, name: str) -> pa.Table:
    """Return the rows of a table or view."""
    try:
        with closing(sqlite3.connect(path.resolve().as_uri() + "?mode=ro", uri=True)) as db:
            tables = db.execute("SELECT 1 FROM sqlite_master WHERE type IN ('table', 'view') AND name = ?", (name,))
            if tables.fetchone() is None:
                hint = "Name the table with .input r(name=...)."
                raise Unavailable(f"{path} has no table or view called {name!r}", hint=hint)
            cursor = db.execute(f"SELECT * FROM {quoted(name)}")  # noqa: S608  (the name is quoted)
            if len(cursor.description) < relation.arity:
                what = f"{path}: {name} has {len(cursor.description)} columns, {relation.name} has {relation.arity}"
                raise SchemaMismatch(what)
            kinds = [column.kind for column in relation.columns]
            rows = [[as_text(*field) for field in zip(row, kinds, strict=False)] for row in cursor]
    except sqlite3.Error as error:
        raise Unavailable(f"cannot read {path}", detail=str(error)) from None
    return table_of(relation, rows, f"{path}:{name}")


def as_text(value: Any, kind: Kind) -> str:
    """Return a value of the database as the text of a fact."""
    if kind == "unsigned" and isinstance(value, int) and value < 0:
        value += 2**64
    return MISSING if value is None else str(value)


# --- writing ----------------------------------------------------------------------------------------------------------


def write_sqlite(relation: Relation, table: pa.Table, path: Path, name: str) -> None:
    """Replace the rows of a relation in a database, which is created if it does not exist."""
    kinds: list[Kind] = [column.kind for column in relation.columns] or ["number"]
    try:
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("PRAGMA synchronous = OFF")
            create_tables(db, relation, kinds, name)
            symbols = SymbolIds(db)
            for batch in table.to_batches(max_chunksize=WRITE_BATCH_ROWS):
                columns = [stored(symbols, column, kind) for column, kind in zip(batch.columns, kinds, strict=True)]
                places = ", ".join("?" * len(kinds))
                insert = f"INSERT OR IGNORE INTO {quoted('_' + name)} VALUES ({places})"  # noqa: S608
                db.executemany(insert, zip(*columns, strict=True))
    except sqlite3.Error as error:
        raise Unavailable(f"cannot write {path}", detail=str(error)) from None


def create_tables(db: sqlite3.Connection, relation: Relation, kinds: list[Kind], name: str) -> None:
    """Create the tables and the view of a relation, without rows."""
    numbers = [str(number) for number in range(len(kinds))]
    types = ", ".join(
        f"{quoted(number)} {'REAL' if kind == 'float' else 'INTEGER'}"
        for number, kind in zip(numbers, kinds, strict=True)
    )
    rows = quoted("_" + name)
    db.execute(f"CREATE TABLE IF NOT EXISTS {quoted(SYMBOLS)} (id INTEGER PRIMARY KEY, symbol TEXT UNIQUE)")
    db.execute(f"DROP VIEW IF EXISTS {quoted(name)}")
    db.execute(f"DROP TABLE IF EXISTS {rows}")
    db.execute(f"CREATE TABLE {rows} ({types}, PRIMARY KEY ({', '.join(map(quoted, numbers))})) WITHOUT ROWID")
    names = [column.name for column in relation.columns] or ["0"]
    shown, sources, conditions = [], [rows], []
    for number, kind, column in zip(numbers, kinds, names, strict=True):
        symbols = quoted(f"_symtab_{number}")
        shown.append(f"{rows}.{quoted(number)} AS {quoted(column)}")
        if kind not in NUMBERS:
            shown[-1] = f"{symbols}.symbol AS {quoted(column)}"
            sources.append(f"{quoted(SYMBOLS)} AS {symbols}")
            conditions.append(f"{rows}.{quoted(number)} = {symbols}.id")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    view = f"SELECT {', '.join(shown)} FROM {', '.join(sources)}{where}"  # noqa: S608
    db.execute(f"CREATE VIEW {quoted(name)} AS {view}")


class SymbolIds:
    """The symbols of a database: those that it held, and those that this output adds."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self.ids: dict[str, int] = dict(db.execute(f"SELECT symbol, id FROM {quoted(SYMBOLS)}"))  # noqa: S608
        self.next_id = max(self.ids.values(), default=0) + 1

    def of(self, texts: list[str]) -> list[int]:
        """Return the ids of symbols, after adding the new ones."""
        new = [text for text in dict.fromkeys(texts) if text not in self.ids]
        added = list(zip(range(self.next_id, self.next_id + len(new)), new, strict=True))
        self.db.executemany(f"INSERT INTO {quoted(SYMBOLS)} VALUES (?, ?)", added)  # noqa: S608
        self.ids |= {text: number for number, text in added}
        self.next_id += len(new)
        return [self.ids[text] for text in texts]


def stored(symbols: SymbolIds, column: Any, kind: Kind) -> list[Any]:
    """Return the values of a column as the database stores them."""
    match kind:
        case "unsigned":  # the same 64 bits, as in Soufflé
            return [value - 2**64 if value >= 2**63 else value for value in column.to_pylist()]
        case "number":
            return list(column.to_pylist())
        case "float":  # SQLite has no value that is not a number
            return ["nan" if value != value else value for value in column.to_pylist()]
    return symbols.of(list(text_values(column)))

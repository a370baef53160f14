"""Random small tables: few values of every type, nulls, and rows that repeat.

The tables of the query forms are fixed, so that a query is valid for all of them; their rows are random:

    r   with a key       s, u   without: rows repeat       e   the edges of a graph

`rare` has the types that only tests of values use.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st


@dataclass(frozen=True)
class Column:
    """A column in scope: how a query writes it, and the kind of its values."""

    sql: str
    kind: str


@dataclass(frozen=True)
class Table:
    """A table: the declaration of each column, and which of them are the key."""

    name: str
    columns: dict[str, str]
    key: str | None = None

    @property
    def definition(self) -> str:
        """The columns as CREATE TABLE has them."""
        key = [f"PRIMARY KEY ({self.key})"] if self.key else []
        return ", ".join([*(f"{name} {declared}" for name, declared in self.columns.items()), *key])

    def kind(self, column: str) -> str:
        """Return the kind of a column's values."""
        return KINDS[self.columns[column].removesuffix(" NOT NULL")]

    def scope(self, alias: str) -> list[Column]:
        """Return the columns as a query sees them."""
        return [Column(f"{alias}.{name}", self.kind(name)) for name in self.columns]


KINDS = {
    "SMALLINT": "int",
    "INT": "int",
    "BIGINT": "int",
    "NUMERIC(8,2)": "numeric",
    "NUMERIC(30,5)": "wide",
    "REAL": "real",
    "DOUBLE PRECISION": "float",
    "TEXT": "text",
    "VARCHAR(4)": "text",
    "CHAR(3)": "char",
    "BOOLEAN": "bool",
    "DATE": "date",
    "TIME": "time",
    "TIMESTAMP": "timestamp",
    "TIMESTAMPTZ": "zoned",
    "INTERVAL": "interval",
    "UUID": "uuid",
    "BYTEA": "bytes",
    "JSONB": "json",
}

R = Table("r", {"id": "INT", "a": "INT", "b": "INT NOT NULL", "t": "TEXT", "n": "NUMERIC(8,2)"}, key="id")
S = Table("s", {"a": "INT", "c": "BIGINT", "t": "TEXT", "n": "NUMERIC(8,2)", "f": "BOOLEAN", "d": "DATE"})
U = Table("u", {"a": "SMALLINT", "x": "DOUBLE PRECISION", "v": "VARCHAR(4)", "m": "TIMESTAMP"})
E = Table("e", {"a": "INT", "b": "INT"})
RARE = Table(
    "rare",
    {
        "a": "INT",
        "w": "NUMERIC(30,5)",
        "q": "REAL",
        "h": "CHAR(3)",
        "o": "TIME",
        "z": "TIMESTAMPTZ",
        "i": "INTERVAL",
        "g": "UUID",
        "y": "BYTEA",
        "j": "JSONB",
    },
)
TABLES = {table.name: table for table in (R, S, U, E)}

LITERALS = {
    "int": ["0", "1", "2", "3", "-1"],
    "numeric": ["0.00", "1.50", "2.25", "-2.25", "10.00"],
    "wide": ["0", "1.50000", "1234567890123456789012345.12345", "-1234567890123456789012345.12345", "0.00001"],
    "real": ["0.0::real", "1.5::real", "-2.25::real", "1e10::real"],
    "float": ["0.0::float8", "1.5::float8", "-2.25::float8", "0.1::float8", "1e15::float8"],
    "text": ["''", "'a'", "'b'", "'ab'", "'B'", "'é'", "'%'"],
    "char": ["'a'::char(3)", "'ab'::char(3)", "'abc'::char(3)", "''::char(3)"],
    "bool": ["true", "false"],
    "date": ["date '2024-02-29'", "date '2024-03-01'", "date '1999-12-31'"],
    "time": ["time '00:00'", "time '10:30:15.25'", "time '23:59:59.999999'"],
    "timestamp": ["timestamp '2024-02-29 10:30'", "timestamp '2024-03-01 00:00:00.5'", "timestamp '1969-12-31 23:59'"],
    "zoned": ["timestamptz '2024-02-29 10:30+00'", "timestamptz '2024-02-29 11:30+01'", "timestamptz '1969-12-31 +05'"],
    "interval": ["interval '1 month'", "interval '30 days'",
                 "interval '-1 day 24 hours'", "interval '0'", "interval '1 s'"],
    "uuid": ["'00000000-0000-0000-0000-000000000001'::uuid", "'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid"],
    "bytes": [r"'\x00'::bytea", r"'\xff01'::bytea", r"''::bytea"],
    "json": ["""'{"a": 1, "b": [1, null]}'::jsonb""", """'{"b": [1, null], "a": 1}'::jsonb""",
             "'1.5'::jsonb", "'null'::jsonb"],
}  # fmt: skip


def literals(kind: str) -> st.SearchStrategy[str]:
    """Generate a literal that is not null."""
    return st.sampled_from(LITERALS[kind])


def values(table: Table, column: str) -> st.SearchStrategy[str]:
    """Generate a value of a column, often null where it may be."""
    known = literals(table.kind(column))
    return known if table.columns[column].endswith("NOT NULL") else st.one_of(known, known, st.just("NULL"))


@st.composite
def rows(draw: st.DrawFn, table: Table, max_size: int = 6) -> list[str]:
    """Generate rows of a table as they stand after VALUES; keys are distinct."""
    keys: list[object] = draw(st.lists(st.integers(0, 12), max_size=max_size, unique=True))
    return [draw(one_row(table, key)) for key in keys]


@st.composite
def one_row(draw: st.DrawFn, table: Table, key: object) -> str:
    """Generate one row with a given key, which matters only if the table has one."""
    cells = [str(key) if column == table.key else draw(values(table, column)) for column in table.columns]
    return f"({', '.join(cells)})"


@st.composite
def filled(draw: st.DrawFn, *tables: Table) -> list[str]:
    """Generate the statements that fill tables."""
    chosen = [(table, draw(rows(table))) for table in tables]
    return [f"INSERT INTO {table.name} VALUES {', '.join(lines)}" for table, lines in chosen if lines]

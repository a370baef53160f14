"""Random epochs of changes: inserts of rows that may exist, updates and deletes of many rows, and transactions.

Keys may repeat across epochs. Such an insert is refused by both systems with 23505, so a schedule also checks that a
refused statement leaves no trace.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from tests.sql.generated.tables import Table, literals, one_row, values


@st.composite
def schedules(draw: st.DrawFn, tables: Sequence[Table], max_epochs: int = 3) -> list[list[str]]:
    """Generate epochs, each a list of statements that are one transaction."""
    return [draw(epochs(tables)) for _ in range(draw(st.integers(1, max_epochs)))]


@st.composite
def epochs(draw: st.DrawFn, tables: Sequence[Table]) -> list[str]:
    """Generate one epoch: mostly a statement, sometimes several between BEGIN and COMMIT, each of its own table."""
    if len(tables) == 1 or draw(st.integers(0, 2)):
        return [draw(changes(draw(st.sampled_from(list(tables)))))]
    chosen = draw(st.lists(st.sampled_from(list(tables)), min_size=2, max_size=3, unique_by=lambda table: table.name))
    return ["BEGIN", *(draw(changes(table)) for table in chosen), "COMMIT"]


@st.composite
def changes(draw: st.DrawFn, table: Table) -> str:
    """Generate one statement that changes a table."""
    kind = draw(st.sampled_from(["insert", "insert", "update", "delete"]))
    if kind == "insert":
        keys = draw(st.lists(st.integers(0, 40), min_size=1, max_size=3, unique=True))
        return f"INSERT INTO {table.name} VALUES {', '.join(draw(one_row(table, key)) for key in keys)}"
    condition = draw(conditions(table))
    if kind == "delete":
        return f"DELETE FROM {table.name} WHERE {condition}"
    column = draw(st.sampled_from([name for name in table.columns if name != table.key]))
    return f"UPDATE {table.name} SET {column} = {draw(values(table, column))} WHERE {condition}"


@st.composite
def conditions(draw: st.DrawFn, table: Table) -> str:
    """Generate a condition that some rows meet."""
    column = draw(st.sampled_from([name for name in table.columns if table.kind(name) != "json"]))
    shape = draw(st.sampled_from(["{} IS NULL", "{} IS NOT NULL", "{} = {}", "{} < {}", "{} >= {}"]))
    return shape.format(column, draw(literals(table.kind(column))))

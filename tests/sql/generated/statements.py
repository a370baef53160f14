"""Random statements that change a table with all constraints: keys, NOT NULL, CHECK, defaults; with RETURNING."""

from __future__ import annotations

from hypothesis import strategies as st

DEFINITION = (
    "id INT PRIMARY KEY, k INT DEFAULT 7, t TEXT NOT NULL DEFAULT 'd', n NUMERIC(4,1) CHECK (n > 0),"
    " v VARCHAR(2), CHECK (k < 100)"
)
OTHER = "id INT, k INT"
NUMBER = st.sampled_from(["0", "1", "2", "3", "NULL", "DEFAULT"])
CELLS = {
    "id": st.sampled_from(["0", "1", "2", "3", "4", "5", "NULL", "9999999999"]),
    "k": st.sampled_from(["0", "1", "2", "99", "100", "NULL", "DEFAULT"]),
    "t": st.sampled_from(["'a'", "'b'", "''", "NULL", "DEFAULT"]),
    "n": st.sampled_from(["1", "2.55", "-1", "0", "NULL", "12345"]),
    "v": st.sampled_from(["'a'", "'ab'", "'abc'", "'ab  '", "NULL"]),
}
CONDITIONS = ["id = 1", "id > 2", "k = 1", "k IS NULL", "t < 'b'", "n < 2", "true", "false", "id IN (SELECT id FROM o)"]
ASSIGNMENTS = [
    "k = k + 1", "k = DEFAULT", "t = t || 'x'", "t = NULL", "n = n * 2", "n = n - 2", "id = id + 10", "id = 3",
    "v = t", "k = (SELECT max(k) FROM o)", "k = 99, n = 1", "(k, n) = (1, 2)",
]  # fmt: skip
RETURNING = ["", "", " RETURNING *", " RETURNING id, k + 1 AS next", " RETURNING upper(t)"]
CONFLICTS = [
    "", "", " ON CONFLICT DO NOTHING", " ON CONFLICT (id) DO NOTHING", " ON CONFLICT (id) DO UPDATE SET k = EXCLUDED.k",
    " ON CONFLICT (id) DO UPDATE SET k = c.k + 1, t = EXCLUDED.t WHERE c.k < 50",
    " ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n - 2",
]  # fmt: skip


@st.composite
def inserts(draw: st.DrawFn) -> str:
    """Generate an INSERT of values or of a query."""
    tail = draw(st.sampled_from(CONFLICTS)) + draw(st.sampled_from(RETURNING))
    if draw(st.integers(0, 4)) == 0:
        condition = draw(st.sampled_from(["true", "id > 1", "id IS NOT NULL"]))
        return f"INSERT INTO c (id, k) SELECT id, max(k) FROM o WHERE {condition} GROUP BY id{tail}"
    columns = ["id", *draw(st.lists(st.sampled_from(["k", "t", "n", "v"]), unique=True))]
    rows = [f"({', '.join(draw(CELLS[column]) for column in columns)})" for _ in range(draw(st.integers(1, 3)))]
    return f"INSERT INTO c ({', '.join(columns)}) VALUES {', '.join(rows)}{tail}"


@st.composite
def updates(draw: st.DrawFn) -> str:
    """Generate an UPDATE, sometimes from another table with one match for each row."""
    tail = draw(st.sampled_from(RETURNING))
    assignment = draw(st.sampled_from(ASSIGNMENTS))
    if draw(st.integers(0, 4)) == 0:
        return "UPDATE c SET k = m.k FROM (SELECT id, max(k) AS k FROM o GROUP BY id) AS m WHERE c.id = m.id"
    return f"UPDATE c SET {assignment} WHERE {draw(st.sampled_from(CONDITIONS))}{tail}"


@st.composite
def deletes(draw: st.DrawFn) -> str:
    """Generate a DELETE, sometimes with USING."""
    tail = draw(st.sampled_from(RETURNING))
    if draw(st.integers(0, 4)) == 0:
        return "DELETE FROM c USING o WHERE c.id = o.id AND o.k > 0"
    return f"DELETE FROM c WHERE {draw(st.sampled_from(CONDITIONS))}{tail}"


@st.composite
def others(draw: st.DrawFn) -> str:
    """Generate a change of the other table."""
    if draw(st.integers(0, 9)) == 0:
        return "TRUNCATE o"
    rows = [f"({draw(st.integers(0, 5))}, {draw(st.integers(0, 3))})" for _ in range(draw(st.integers(1, 3)))]
    return f"INSERT INTO o VALUES {', '.join(rows)}"


def statement_lists() -> st.SearchStrategy[list[str]]:
    """Generate statements."""
    return st.lists(st.one_of(inserts(), inserts(), updates(), deletes(), others()), min_size=1, max_size=6)

"""The magics: SQL and Datalog in cells, on each kind of db; cells run twice."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import kpg
from kpg.notebook.magics import split_goal, split_options
from tests.notebook.test_live_views import eventually
from tests.server.serving import ADMIN, served


@pytest.fixture(params=["embedded", "background", "server"])
def db(request: pytest.FixtureRequest) -> Iterator[Any]:
    if request.param == "server":
        with served() as server, kpg.connect(server.url, token=ADMIN) as connection:
            yield connection
        return
    with kpg.open(background=request.param == "background") as opened:  # type: ignore[call-overload]
        yield opened


@pytest.fixture
def cell(db: Any, notebook: Any) -> Callable[..., Any]:
    """Run a magic as a cell, and return its result."""
    kpg.load_ipython_extension(notebook)
    notebook.user_ns["db"] = db

    def run(magic: str, line: str, text: str | None = None) -> Any:
        arguments = (line,) if text is None else (line, text)
        return notebook.run(f"%%{magic} {line}\n{text}", lambda: notebook.magics[magic](*arguments))

    return run


DEFINITIONS = """
    CREATE TABLE orders (id BIGINT PRIMARY KEY, who TEXT NOT NULL, amount BIGINT);
    -- a comment
    CREATE MATERIALIZED VIEW totals AS SELECT who, sum(amount) AS total FROM orders GROUP BY who;
    INSERT INTO orders VALUES (1, 'ann', 10), (2, 'bob', 20) ON CONFLICT (id) DO NOTHING;
"""


def test_cells_of_sql_run_twice_and_take_variables(cell: Any, notebook: Any) -> None:
    for _ in range(2):
        cell("sql", "", DEFINITIONS)
        notebook.user_ns["least"] = 15
        assert cell("sql", "SELECT who FROM totals WHERE total > :least").rows() == [("bob",)]
    cell("sql", "", "CREATE MATERIALIZED VIEW totals AS SELECT who, count(*) AS n FROM orders GROUP BY who")
    assert sorted(cell("sql", "-o kept SELECT * FROM totals") or notebook.user_ns["kept"].rows()) == [
        ("ann", 1), ("bob", 1)
    ]  # fmt: skip
    with pytest.raises(kpg.NameTaken):
        cell("sql", "CREATE TABLE orders (id BIGINT)")


def test_a_query_of_sql_is_followed_and_its_cell_runs_twice(cell: Any, notebook: Any) -> None:
    cell("sql", "", DEFINITIONS)
    views = [cell("sql", "--live", "SELECT who, sum(amount) AS total FROM orders GROUP BY who") for _ in range(2)]
    assert "<td>ann</td><td>10</td>" in notebook.last["text/html"]
    cell("sql", "INSERT INTO orders VALUES (3, 'ann', 5)")
    eventually(lambda: "<td>ann</td><td>15</td>" in notebook.last["text/html"])
    assert [view.is_live for view in views] == [False, True]
    with pytest.raises(kpg.ProgramError, match="can be followed"):
        cell("sql", "--live DELETE FROM orders")
    views[1].stop()


RULES = """
    .decl edge(x: number, y: number)
    path(x, y) :- edge(x, y).
    path(x, z) :- path(x, y), edge(y, z).
"""


def insert_edges(db: Any, rows: list[tuple[int, int]]) -> None:
    if hasattr(db, "create_relation"):
        db.insert("edge", rows)
    else:
        db["edge"].insert(rows)
        db.advance()


def test_cells_of_datalog_run_twice_and_follow_changes(cell: Any, db: Any, notebook: Any) -> None:
    for _ in range(2):
        cell("datalog", "--live", RULES)
    insert_edges(db, [(1, 2), (2, 3)])
    notebook.run("end", lambda: None)
    eventually(lambda: "3 distinct rows" in notebook.last["text/plain"])
    assert sorted(cell("datalog", "path(1, y)?").rows()) == [(2,), (3,)]
    assert cell("datalog", "", "path(x, y), y > 2, x > 1?").rows() == [(2, 3)]
    view = cell("datalog", "--live path(2, y)?")
    insert_edges(db, [(3, 4)])
    notebook.run("end", lambda: None)
    eventually(lambda: "2 distinct rows" in notebook.last["text/plain"])
    view.stop()


def test_rules_with_another_text_take_the_place_of_the_old_ones(cell: Any, db: Any) -> None:
    cell("datalog", "", RULES)
    insert_edges(db, [(1, 2), (2, 3)])
    changed = cell("datalog", "-o answer", "path(x, y) :- edge(y, x).")
    assert changed is None
    assert sorted(cell("datalog", "path(x, y)?").rows()) == [(2, 1), (3, 2)]


def test_rules_read_tables_and_views_of_sql(cell: Any) -> None:
    cell("sql", "", DEFINITIONS)
    assert cell("datalog", "", "big(i) :- orders(i, _, _), i > 1.\nbig(i)?").rows() == [(2,)]
    assert cell("datalog", "", "known(w) :- totals(w, _).\nknown(w)?").rows() == [("ann",), ("bob",)]


def test_errors_show_their_message_alone(cell: Any) -> None:
    with pytest.raises(kpg.ParseError) as caught:
        cell("sql", "SELEC 1")
    assert "\n".join(caught.value._render_traceback_()).startswith("ParseError: cell:1:1: syntax error")  # type: ignore[attr-defined]
    with pytest.raises(kpg.ProgramError, match="no option --lively"):
        cell("sql", "--lively SELECT 1")
    with pytest.raises(kpg.ProgramError, match="cannot be a variable"):
        cell("sql", "-o 7 SELECT 1")


def test_the_db_of_cells_can_be_chosen(notebook: Any) -> None:
    kpg.load_ipython_extension(notebook)
    with pytest.raises(kpg.UndefinedName, match="no variable db"):
        notebook.magics["sql"]("SELECT 1")
    with kpg.open() as first:
        notebook.user_ns["other"] = first
        assert notebook.magics["kpg"]("other") is first
        assert notebook.magics["sql"]("SELECT 1").rows() == [(1,)]
        notebook.user_ns["wrong"] = 7
        notebook.magics["kpg"]("wrong")
        with pytest.raises(kpg.ProgramError, match="is not a db"):
            notebook.magics["sql"]("SELECT 1")


def test_options_and_goals_are_told_from_texts() -> None:
    assert split_options("-l -o x SELECT 1")[1] == "SELECT 1"
    assert split_options("-- a comment")[1] == "-- a comment"
    assert split_goal("p(x) :- q(x).\np(1)?\n") == ("p(x) :- q(x).", "p(1)")
    assert split_goal("p(x) :- q(x).") == ("p(x) :- q(x).", None)

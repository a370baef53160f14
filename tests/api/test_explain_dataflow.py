"""Introspection of a db: explanations, plain descriptions, tables in a notebook."""

import json
import re

import pytest

import kpg
from kpg import col


@pytest.fixture
def db():
    with kpg.open() as db:
        yield db


@pytest.fixture
def graph(db):
    """A relation arranged by one column, and two queries that share it, one of them recursive."""
    edges = db.input("edges", src=int, dst=int)
    by_src = edges.arrange("src")
    roots = db.input("roots", at=int)

    def step(reach):
        further = by_src.join(reach, on={"src": "at"}).select(at=col("dst"))
        return further.consolidate().concat(reach).distinct()  # consolidated, so that it stays a loop

    reach = roots.iterate(step).output("reach")
    degree = by_src.count("src").output("degree")
    edges.insert([(1, 2), (2, 3)])
    roots.insert([(1,)])
    db.advance()
    return edges, by_src, reach, degree


def find(description, name):
    (arrangement,) = [entry for entry in description["arrangements"] if entry["name"] == name]
    return arrangement


def test_describe_is_plain_and_names_sharing_dataflows_and_pinning_handles(db, graph):
    description = json.loads(json.dumps(db.describe()))
    shared = find(description, "edges by src")
    assert shared["rows"] == 2 and shared["bytes"] > 0 and shared["keys"] == ["src"]
    assert shared["columns"] == ["src: int64", "dst: int64"]
    assert set(shared["shared_by"]) == {"reach", "degree"}
    pins = {pin["by"]: pin["since"] for pin in shared["pinned_by"]}
    assert pins["input edges and 1 handle"] == [[0]]
    assert pins["reach: join (left)"] == [[1]] and pins["degree: count (input)"] == [[1]]
    assert [entry["name"] for entry in description["inputs"]] == ["edges", "roots"]
    assert [entry["name"] for entry in description["outputs"]] == ["reach", "degree"]
    assert {entry["state"] for entry in description["dataflows"]} == {"idle"}
    assert description["memory"]["limit_bytes"] is None and description["memory"]["resident_bytes"] > 0
    assert description["epoch"] == 1 and description["complete"] == [[0]]


def test_a_released_query_shares_and_pins_nothing_any_more(db, graph):
    _, by_src, reach, degree = graph
    reach.release()
    degree.release()
    by_src.release()
    shared = find(db.describe(), "edges by src")
    assert shared["shared_by"] == [] and [pin["by"] for pin in shared["pinned_by"]] == ["input edges"]


def test_explain_has_a_block_for_each_arrangement(db, graph):
    text = db.explain()
    blocks = text.split("\n\n")
    assert blocks[0].startswith("db · open at 1 · ")
    assert any(block.startswith("edges by src\n") and "shared by  reach, degree" in block for block in blocks)
    assert re.search(r"^ +holds +2 rows in 1 batch, \d+ bytes, since 0, complete to 1$", text, re.MULTILINE)
    assert "reach     " in blocks[-1] and "idle" in blocks[-1]
    assert all(len(line) <= 120 and line == line.rstrip() for line in text.splitlines())


def test_explain_of_an_answer_shows_its_operators_once_each(db, graph):
    """A1.1, A3.1: the built graph is visible, and each stateful operator reads an arrangement."""
    _, _, reach, degree = graph
    text = reach.explain()
    assert "edges by src\n" in text and "degree by" not in text
    tree = text.split("\n\n")[-1]
    assert tree.startswith("reach · ") and "\n  output reach ← " in tree
    assert tree.count("import edges") == 1 and tree.count("← join") == 1 and "iterate is a loop: " in tree
    assert set(re.findall(r"see #(\d+)", tree)) <= set(re.findall(r"\w #(\d+)", tree)), "every reference is to a branch"
    assert re.search(r"distinct #\d+ ← arrange at", tree) and re.search(r"[├└]─ enter iterate ← import edges", tree)
    assert "output degree ← " in degree.explain()


def test_a_dataflow_that_has_not_run_is_busy(db, graph):
    edges, _, _, _ = graph
    late = edges.count("dst").output("late")
    assert "late · " in late.explain() and "busy" in late.explain()
    late.rows()
    assert "idle" in late.explain()


def test_a_dataflow_with_rows_for_a_later_time_is_waiting(db):
    rows = db.input("rows", x=int)
    answer = rows.filter(col("x") > 0).output("answer")
    rows.update_at([(1,)], 5)
    db.advance()
    states = {dataflow["name"]: dataflow["state"] for dataflow in db.describe()["dataflows"]}
    assert states["rows"] == "waiting for 5" and answer.rows() == []


def test_many_readers_are_counted_not_listed(db):
    rows = db.input("rows", x=int)
    by_x = rows.arrange("x")
    outputs = [by_x.count("x").output(f"query {n}") for n in range(30)]
    (block,) = [block for block in db.explain().split("\n\n") if block.startswith("rows by x")]
    assert "and 18 more" in block and len(outputs) == 30


def test_the_errors_of_an_answer_are_shown_once_there_are_some(db):
    rows = db.input("rows", x=int)
    answer = rows.select(y=1 // col("x")).output("answer")
    rows.insert([(1,)])
    db.advance()
    assert "errors of" not in db.explain()
    rows.insert([(0,)])
    db.advance()
    assert "errors of answer" in db.explain()
    assert "division" in answer._repr_html_() or "answer has no answer" in answer._repr_html_()


def test_html_shows_the_first_rows_with_their_time(db):
    rows = db.input("rows", x=int, text=str)
    answer = rows.output("answer")
    assert "nothing is complete yet" in answer._repr_html_()
    rows.insert([(n, "a") for n in range(100)])
    db.advance()
    html = answer._repr_html_()
    assert "as of 0" in html and "first 20 of 100" in html and html.count("<tr>") == 21
    assert "<th>times</th>" not in html
    rows.insert([(0, "a")])
    db.advance()
    assert "<th>times</th>" in answer._repr_html_()


def test_html_escapes_everything(db):
    evil = "<script>alert(1)</script>"
    rows = db.input(f"rows{evil}", **{f"x{evil}": str})
    answer = rows.output(f"answer{evil}")
    rows.insert([(evil,)])
    db.advance()
    shown = [answer._repr_html_(), db._repr_html_(), rows._repr_html_(), rows.arrange(f"x{evil}")._repr_html_()]
    assert all("<script>" not in html and "&lt;script&gt;" in html for html in shown)


def test_html_of_long_values_is_short(db):
    rows = db.input("rows", text=str)
    answer = rows.output("answer")
    rows.insert([("x" * 1_000_000,)])
    db.advance()
    assert len(answer._repr_html_()) < 1000


def test_html_of_an_answer_that_keeps_nothing_shows_its_columns(db):
    answer = db.input("rows", x=int).output("answer", keep=False)
    assert "keeps nothing to read" in answer._repr_html_() and "int64" in answer._repr_html_()

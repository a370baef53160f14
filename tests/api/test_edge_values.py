"""Extreme values and counts: each has a defined answer or a clear error, and other queries continue.

Text that is not UTF-8, text of ten megabytes, rows with negative counts, a cycle on which time does not grow.
"""

import pyarrow as pa
import pytest

import kpg
from kpg import col
from kpg.dataflow.channel import LocalPact
from kpg.operators.linear import Linear, NegateStage
from kpg.progress.summary import identity


@pytest.fixture
def db():
    """A db with a query that must still work afterwards."""
    with kpg.open() as db:
        witness = db.input("witness", n=int)
        total = witness.group_by().sum("n").output("total")
        yield db
        witness.insert([(2,)])
        db.advance()
        assert total.rows() == [(2,)]


def test_text_that_is_not_utf8_is_refused_with_its_row(db):
    texts = db.input("texts", text=str)
    answer = texts.output()
    latin = pa.Array.from_buffers(pa.string(), 2, [None, *pa.array([b"ok", b"caf\xe9"], pa.binary()).buffers()[1:]])
    for rows in (pa.table({"text": latin}), [("ok",), ("caf\udce9",)]):
        with pytest.raises(kpg.SchemaMismatch) as refused:
            texts.insert(rows)
        assert "row 1" in refused.value.what
        assert "UTF-8" in refused.value.detail or "lone surrogate" in refused.value.detail
        assert "binary" in refused.value.hint
    texts.insert([("café",)])
    db.advance()
    assert answer.rows() == [("café",)], "nothing of what was refused"


def test_bytes_of_any_kind_are_binary(db):
    blobs = db.input("blobs", blob=bytes)
    answer = blobs.count("blob").output()
    blobs.insert([(b"caf\xe9",), (b"\x00",), (b"",)])
    db.advance()
    assert sorted(answer.rows()) == [(b"", 1), (b"\x00", 1), (b"caf\xe9", 1)]


def test_texts_of_ten_megabytes_are_values_like_any_other(db):
    """They are joined, ordered, counted and removed; an error message does not print them."""
    texts, marks = db.input("texts", text=str, n=int), db.input("marks", text=str)
    huge = "x" * 10_000_000
    joined = texts.join(marks, on="text").select("n").output()
    least, most = texts.group_by().min("text").output(), texts.group_by().max("text").output()
    texts.insert([(huge, 1), (huge + "y", 2), ("a", 3)])
    marks.insert([(huge,)])
    db.advance()
    assert joined.rows() == [(1,)] and least.rows() == [("a",)] and most.rows() == [(huge + "y",)]
    with pytest.raises(kpg.SchemaMismatch) as refused:
        texts.insert([(huge, huge)])
    assert len(str(refused.value)) < 2_000
    texts.remove([(huge + "y", 2)])
    db.advance()
    assert most.rows() == [(huge,)]


def test_rows_with_negative_counts_are_absent_for_distinct_and_extremes(db):
    """distinct, min, max, argmin and top_k see only positive counts; counts and sums add negative ones."""
    rows = db.input("rows", k=int, v=int)
    of = rows.group_by("k")
    answers = {
        "distinct": rows.distinct(),
        "threshold": rows.threshold(1),
        "min": of.min("v"),
        "max": of.max("v"),
        "argmin": of.argmin("v"),
        "top": of.top_k(2, by="-v"),
        "loop": rows.iterate(lambda v: v.distinct()),
        "count": rows.count("k"),
        "sum": of.sum("v"),
    }
    outputs = {name: answer.output(name) for name, answer in answers.items()}
    rows.remove([(1, 5), (1, 9), (2, 7)])
    rows.insert([(1, 6)])
    db.advance()
    now = {name: output.rows() for name, output in outputs.items()}
    assert {now.pop(name) == [(1, 6)] for name in ("distinct", "threshold", "min", "max", "argmin", "top")} == {True}
    assert now == {"loop": [(1, 6)], "count": [(1, -1), (2, -1)], "sum": [(1, -8), (2, -7)]}
    rows.insert([(1, 5), (1, 9), (2, 7)])
    db.advance()
    assert outputs["max"].rows() == outputs["sum"].rows() == [(1, 6)] and outputs["count"].rows() == [(1, 1)]


def test_a_cycle_on_which_time_does_not_grow_is_refused(db):
    """A1.9: loops of the API always add a round; a cycle wired by hand raises."""

    def build(dataflow):
        one, two = Linear("one", [NegateStage()]), Linear("two", [NegateStage()])
        stream = dataflow.add(one, depth=1)
        dataflow.add_input(one, 1, identity(1))
        dataflow.connect(dataflow.add(two, [(stream, LocalPact())], depth=1), one, 0)

    before = len(db.worker.dataflows)
    with pytest.raises(kpg.BadPlan, match="cycle"):
        db.install("cycle", build)
    assert len(db.worker.dataflows) == before


def test_empty_batches_change_nothing_and_cost_no_time(db):
    rows = db.input("rows", x=int)
    answer = rows.filter(col("x") > 0).output()
    for nothing in ([], {"x": []}, pa.table({"x": pa.array([], pa.int64())})):
        rows.insert(nothing)
        rows.remove(nothing)
        rows.update_at(nothing, db.epoch)
    steps = db.worker.steps
    db.advance()
    assert db.worker.steps == steps and answer.rows() == [] and list(answer.changes()) == []

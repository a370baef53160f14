"""Reads in an order, reads of files, and other conveniences of outputs and collections."""

import datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg import col
from kpg.testing.denotations import nulls_last

ROWS = st.lists(
    st.tuples(
        st.sampled_from([None, 0, 1, -5]),
        st.sampled_from([None, "b", "a", "é"]),
        st.sampled_from([0.0, -1.5, float("inf")]),
        st.sampled_from([None, Decimal("0.5"), Decimal(-(10**25))]),
    ),
    max_size=8,
)


@given(ROWS, st.integers(0, 3), st.integers(0, 3))
def test_sorted_reads_are_first_rows(rows, size, offset):
    with kpg.open() as db:
        table = db.input("t", x="int64?", s="string?", f=float, m="decimal(30,2)?")
        answer = table.output("answer")
        table.insert(rows)
        db.advance()
        plain = sorted(rows, key=lambda row: tuple(map(nulls_last, row)))
        assert answer.limit(size, offset).rows() == plain[offset : offset + size]
        assert answer.sort().rows() == plain and answer.head().rows() == plain[:5]
        read = answer.sort(col("s").desc(nulls_last=True), "-f", (col("x") + 1).asc(nulls_last=False))
        wanted = sorted(
            plain,
            key=lambda row: (
                row[1] is None,
                [-ord(letter) for letter in row[1] or ""],
                -row[2],
                row[0] is not None,
                row[0] or 0,
            ),
        )
        assert read.rows() == wanted
        assert read.limit(size, offset).to_pandas().shape == (len(wanted[offset : offset + size]), 4)
        if rows and size:
            top = table.group_by().top_k(size, by=read.keys, offset=offset).output()
            assert sorted(top.rows(), key=repr) == sorted(read.limit(size, offset).rows(), key=repr)


def test_an_order_that_fails_on_a_row_is_an_error():
    with kpg.open() as db:
        table = db.input("t", x=int)
        answer = table.output("answer")
        table.insert([(0,), (1,)])
        db.advance()
        with pytest.raises(kpg.DataError, match="cannot sort by"):
            answer.sort(1 // col("x")).rows()


def test_outputs_become_frames_of_polars():
    polars = pytest.importorskip("polars")
    with kpg.open() as db:
        table = db.input("t", x=int, s="string?")
        answer = table.output("answer")
        table.insert([(2, None), (1, "a")])
        db.advance()
        assert answer.to_polars().equals(polars.DataFrame({"x": [1, 2], "s": ["a", None]}))
        assert answer.sort("-x").to_polars()["x"].to_list() == [2, 1]


def test_a_db_in_the_background_reads_in_order():
    with kpg.open(background=True) as db:
        table = db.input("t", x=int)
        answer = table.output("answer")
        table.insert([(2,), (1,)])
        db.advance()
        assert answer.sort("-x").limit(1).rows() == [(2,)]


def test_columns_are_dropped_and_inputs_too():
    with kpg.open() as db:
        table = db.input("t", x=int, s=str, f=float)
        assert table.drop("s").schema.names == ("x", "f")
        assert table.select("x", "s").drop("x").schema.names == ("s",)
        with pytest.raises(kpg.BadPlan, match="no columns"):
            table.select("x").drop()
        with pytest.raises(kpg.UndefinedName):
            table.drop("y")
        table.drop()
        assert "t" not in db.inputs


CSV = 'id,name,day,amount\n1,ann,2024-02-29,1.50\n2,"",2024-03-01,\n3,,2024-03-02,2.25\n'


def test_files_become_inputs(tmp_path):
    import pyarrow.csv
    import pyarrow.parquet

    path = tmp_path / "rows.csv"
    path.write_text(CSV)
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(path), tmp_path / "rows.parquet")
    with kpg.open() as db:
        read = db.read_csv("guessed", path, key="id")
        assert repr(read.schema) == "(id: int64, name: string?, day: date, amount: float64?)" and read.key == ("id",)
        named = db.read_csv("named", str(path), id=int, amount="decimal(6,2)?", name="string?")
        some = db.read_parquet("some", tmp_path / "rows.parquet", id=int, day="date")
        answers = [named.output(), some.output()]
        db.advance()
        assert answers[0].rows() == [(1, Decimal("1.50"), "ann"), (2, None, ""), (3, Decimal("2.25"), None)]
        assert answers[1].head(1).rows() == [(1, datetime.date(2024, 2, 29))]
        with pytest.raises(kpg.Unavailable, match="no file"):
            db.read_csv("missing", tmp_path / "missing.csv")
        with pytest.raises(kpg.SchemaMismatch, match="cannot read"):
            db.read_csv("wrong", path, name=int)
        with pytest.raises(kpg.SchemaMismatch):
            db.read_parquet("wrong", tmp_path / "rows.parquet", size=int)
        assert "wrong" not in db.inputs

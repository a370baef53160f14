"""TPC-H as a stream: what has entered and not left is what the batches say, at every point."""

from collections import Counter
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpg.bench.tpch_answers import agree, duckdb_answer
from kpg.bench.tpch_stream import TpchStream, lineitem_batches, order_columns
from kpg.sql.tpch.tpch_data import load_tables
from kpg.sql.tpch.tpch_queries import NUMBERS, columns_read

SCALE_FACTOR = 0.001


@pytest.fixture(scope="module")
def tables():
    return load_tables(SCALE_FACTOR)


def counted(table):
    return Counter(tuple(row.values()) for row in table.to_pylist())


@settings(max_examples=6)
@given(st.sampled_from(list(NUMBERS)), st.sampled_from([100, 1000, 5000]), st.sampled_from([0.1, 0.5, 1.0]))
def test_present_rows_are_the_sum_of_the_batches(tables, number, size, share):
    stream = TpchStream(tables, columns_read(number), deleted_share=share)
    sums = {name: Counter() for name in stream.tables}
    for position, batch in enumerate([*stream.loading(size)]):
        rows = sum(change.rows.num_rows for change in batch)
        assert rows == size or position == len(range(0, stream.rows(), size)) - 1
        for change in batch:
            assert change.diff == 1
            sums[change.table].update(counted(change.rows))
    assert sums == {name: counted(table) for name, table in stream.tables.items()}
    for batch in stream.leaving(size):
        for change in batch:
            assert change.diff == -1
            sums[change.table].subtract(counted(change.rows))
    assert all(min(counts.values()) >= 0 for counts in sums.values())
    assert {name: +counts for name, counts in sums.items()} == {
        name: counted(table) for name, table in stream.present().items()
    }


@settings(max_examples=6)
@given(st.sampled_from(list(NUMBERS)), st.sampled_from([1, 7, 1000]))
def test_rows_that_leave_return(tables, number, size):
    stream = TpchStream(tables, columns_read(number))
    sums = {name: Counter() for name in stream.tables}
    for position, batch in enumerate(stream.churning(size, 10)):
        assert sum(change.rows.num_rows for change in batch) == size
        for change in batch:
            assert change.diff == (-1 if position % 2 == 0 else 1)
            (sums[change.table].update if change.diff > 0 else sums[change.table].subtract)(counted(change.rows))
    assert position == 9 and not any(any(counts.values()) for counts in sums.values())


def test_the_oldest_orders_leave_with_their_lineitems(tables):
    reads = {"orders": ("o_orderkey", "o_orderdate"), "lineitem": ("l_orderkey",)}
    stream = TpchStream(tables, reads)
    for _ in stream.loading(10**6):
        pass
    for _ in stream.leaving(1000):
        dates = stream.present()["orders"]["o_orderdate"].to_pylist()
        assert set(stream.present()["lineitem"]["l_orderkey"].to_pylist()) == set(
            stream.present()["orders"]["o_orderkey"].to_pylist()
        )
    gone = sorted(tables["orders"]["o_orderdate"].to_pylist())[: tables["orders"].num_rows - len(dates)]
    assert len(gone) == tables["orders"].num_rows // 2 and max(gone) <= min(dates)


def test_a_stream_needs_few_more_columns_than_its_query(tables):
    assert order_columns(columns_read(6)) == {
        "lineitem": ["l_quantity", "l_extendedprice", "l_discount", "l_shipdate", "l_orderkey"],
        "orders": ["o_orderkey", "o_orderdate"],
    }


def test_new_lineitems_come_with_their_orders(tables):
    batches = lineitem_batches(tables, 100, 5)
    assert len(batches) == 5
    for orders, lines in batches:
        assert 90 <= lines.rows.num_rows <= 110
        assert set(orders.rows["o_orderkey"].to_pylist()) == set(lines.rows["l_orderkey"].to_pylist())
    last = batches[-1][1].rows
    assert last.equals(tables["lineitem"].slice(tables["lineitem"].num_rows - last.num_rows))


def test_answers_agree_up_to_quotients_and_order():
    assert agree([(Decimal("1.50"), "a  "), (None, "b")], [(None, "b"), (Decimal("1.5"), "a")])
    assert agree([(Decimal("0.3333333333333333"),)], [(1 / 3,)])
    assert agree([(Decimal("0.333333"),)], [(1 / 3,)], 1e-6) and not agree([(Decimal("0.333333"),)], [(1 / 3,)])
    for theirs in ([(Decimal("1.51"),)], [], [(Decimal("1.50"),)] * 2, [(None,)], [(1.5001,)]):
        assert not agree([(Decimal("1.50"),)], theirs)


def test_duckdb_answers_each_query(tables):
    answers = {number: duckdb_answer(number, tables) for number in NUMBERS}
    assert all(agree(rows, list(reversed(rows))) for rows in answers.values()) and any(answers.values())

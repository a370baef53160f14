"""What plans arrange: no more rows, columns and copies than a query needs."""

from __future__ import annotations

import kpg
from kpg.sql.tpch.tpch_queries import columns_read, query_text
from kpg.sql.tpch.tpch_tables import create_table


def plan_of(number: int) -> tuple[list[str], list[str]]:
    """Return the algebra of a query of TPC-H over streams with keys, and its arrangements."""
    with kpg.open() as db:
        for table, columns in columns_read(number).items():
            db.sql(create_table(table, columns, kept=False))
        lines = [row[0].strip() for row in db.sql(f"EXPLAIN {query_text(number)}").rows()]
    at = lines.index("Arrangements")
    return lines[:at], [line.rsplit("  ", 1)[0].strip() for line in lines[at + 1 :]]


def test_groups_that_a_join_asks_for_read_the_arrangement_of_the_join():
    algebra, arrangements = plan_of(17)
    assert any(line.startswith("Join semi on l_partkey") for line in algebra)
    assert sum("l_quantity" in line for line in arrangements) == 1


def test_a_minimum_is_computed_for_the_parts_that_the_query_asks_for():
    algebra, arrangements = plan_of(2)
    assert any(line.startswith("Join semi on ps_partkey") for line in algebra)
    assert sum(line.startswith("intermediate rows by ps_partkey (ps_partkey, ps_suppkey") for line in arrangements) == 1


def test_groups_are_described_after_they_are_summed_and_ties_read_no_further_than_the_key():
    algebra, arrangements = plan_of(10)
    assert "Aggregate by (o_custkey) sum=sum(l_extendedprice * (1 - l_discount))" in algebra
    buckets = [line for line in arrangements if "bucket" in line]
    assert buckets and all(line.endswith("(bucket, revenue, c_custkey)") for line in buckets)


def test_joins_pass_on_only_the_columns_that_are_read_later():
    _, arrangements = plan_of(9)
    for line in arrangements:
        assert not ("n_name" in line and "s_suppkey" in line), line


def test_an_anti_join_is_applied_to_the_rows_that_joins_leave():
    algebra, _ = plan_of(16)
    anti, inner = (next(at for at, line in enumerate(algebra) if line.startswith(kind))
                   for kind in ("Join anti", "Join inner"))  # fmt: skip
    assert anti < inner


def test_a_filter_by_a_substring_is_applied_before_a_join():
    algebra, _ = plan_of(22)
    anti = next(at for at, line in enumerate(algebra) if line.startswith("Join anti"))
    assert algebra[anti + 1].startswith("Filter (substring(")


def test_the_table_that_describes_groups_is_found_among_those_that_no_aggregate_reads():
    with kpg.open() as db:
        db.sql("CREATE TABLE s (a INT PRIMARY KEY, b TEXT); CREATE TABLE o (c INT)")
        plan = db.sql("EXPLAIN SELECT s.a, s.b, count(*) FROM s, o WHERE s.a = o.c GROUP BY s.a, s.b").rows()
        assert any("Aggregate by (c)" in row[0] for row in plan)

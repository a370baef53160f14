"""The default limits of a server refuse no ordinary program: recursions, triangles and the 22 queries of TPC-H.

Sizes are small here, and the limits that grow with the size are as many times smaller. `SIZES["full"]` are the sizes of
the benchmarks (Q1, Q3, Q8), for which the limits are as they are; run them with

    KPG_FULL_SIZE=1 pytest tests/service/test_default_limits.py
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest

import kpg
from kpg.bench.data.graphs import Ints, bernoulli_graph, binary_tree, random_graph, star
from kpg.bench.queries.q03_triangles import triangles
from kpg.bench.queries.recursion_programs import SG, TC
from kpg.bench.reference_answers import closure, same_generation
from kpg.bench.tpch_answers import agree, connect
from kpg.bench.tpch_sessions import columns_of_all
from kpg.server.running_server import default_limits
from kpg.service import Service
from kpg.sql.tpch.tpch_data import load_tables
from kpg.sql.tpch.tpch_queries import NUMBERS, query_text
from kpg.sql.tpch.tpch_tables import create_table


@dataclass(frozen=True)
class Sizes:
    """The sizes of all programs, and how many times smaller the limits are."""

    nodes: int
    probability: float
    depth: int
    edges: int
    rays: int
    scale_factor: float
    smaller: int


SIZES = {
    "small": Sizes(120, 0.05, 5, 3_000, 3_000, 0.001, 100),
    "full": Sizes(2_000, 0.005, 11, 1_000_000, 1_000_000, 1.0, 1),
}
SIZE = SIZES["full" if os.environ.get("KPG_FULL_SIZE") else "small"]
TRIANGLES = "answer(a, b, c) :- e(a, b), e(b, c), e(c, a)."


@pytest.fixture
def service() -> Iterator[Service]:
    """A service with the limits of `kpg serve`, as many times smaller as the programs are."""
    limits = replace(default_limits(), rows=None)
    query = limits.query
    assert query.product_rows and query.step_rows and query.kept_rows and query.kept_bytes
    smaller = {
        name: getattr(query, name) // SIZE.smaller for name in ("product_rows", "step_rows", "kept_rows", "kept_bytes")
    }
    with kpg.open() as db:
        yield Service(db, limits=replace(limits, query=replace(query, **smaller)))


def rows_of(service: Service, rules: str, edges: Ints) -> Ints:
    """Return the answer of rules over edges, as the interest of a client gets it."""
    service.create_relation("e", {"x": int, "y": int})
    service.put("e", {"x": edges[:, 0], "y": edges[:, 1]})
    service.register(rules)
    columns = service.interest("answer").take().table
    return np.column_stack([column.to_numpy() for column in columns.columns])


def test_transitive_closure(service: Service) -> None:
    edges = bernoulli_graph(SIZE.nodes, SIZE.probability)
    rows = rows_of(service, TC, edges)
    assert np.array_equal(np.sort(rows[:, 1] * SIZE.nodes + rows[:, 0]), closure(edges, edges, SIZE.nodes))


def test_same_generation(service: Service) -> None:
    edges = binary_tree(SIZE.depth)
    nodes = int(edges.max()) + 1
    rows = rows_of(service, SG, edges)
    assert np.array_equal(np.sort(rows[:, 0] * nodes + rows[:, 1]), same_generation(edges, nodes))


@pytest.mark.parametrize("graph", ["random", "star"])
def test_triangles(service: Service, graph: str) -> None:
    if graph == "star":
        edges, expected = star(SIZE.rays), 3 * (SIZE.rays - 1)
    else:
        edges = np.unique(random_graph(SIZE.edges // 10, SIZE.edges, 3), axis=0)
        expected = triangles(edges)
    assert len(rows_of(service, TRIANGLES, edges)) == expected


def test_the_views_of_tpch(service: Service) -> None:
    tables = load_tables(SIZE.scale_factor, columns_of_all())
    for name, columns in columns_of_all().items():
        service.execute_sql(create_table(name, columns, kept=True))
        service.db.inputs[name].insert(tables[name])
        service.advance()
    duckdb = connect(tables)
    for number in NUMBERS:
        service.execute_sql(f"CREATE MATERIALIZED VIEW q{number} AS {query_text(number)}")
        rows = list(service.execute_sql(f"SELECT * FROM q{number}").rows())
        assert agree(rows, duckdb.sql(query_text(number)).fetchall()), f"query {number}"
    duckdb.close()

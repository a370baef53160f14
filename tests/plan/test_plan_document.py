"""A plan that went through JSON describes the same collection."""

import datetime
import decimal
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg import col, lit, when
from kpg.api.arrow_functions import ArrowFunction
from kpg.api.changes import EachChange
from kpg.columns.schema import Schema
from kpg.errors import BadPlan, ProtocolError
from kpg.plan import plan_document, plan_values
from kpg.plan.nodes import SaturatedNode
from kpg.query.datalog import parse
from kpg.query.ir.compile import compile
from kpg.query.lower.lower_program import LoweredProgram


class Host:
    """Reads plans over the same db that they were written from."""

    def __init__(self, db: kpg.Database) -> None:
        self.db = db
        self.seen: list[Any] = []

    def find_owner(self, reference: Any) -> Any:
        return self.seen[reference]

    def refer(self, owner: Any) -> int:
        self.seen.append(owner)
        return len(self.seen) - 1

    def flat_map(self, function: Any, before: Schema, after: Schema) -> Any:
        return ArrowFunction(function, before, after, self.db.symbols)

    def inspect(self, function: Any, schema: Schema) -> Any:
        return EachChange(self.db, schema, function)


def again(collection: kpg.Collection) -> kpg.Collection:
    """The collection that the document of a collection describes."""
    host = Host(collection.db)
    written = json.loads(json.dumps(plan_document.write(collection.node, host.refer)))
    return kpg.Collection(collection.db, plan_document.read(written, host))


def twice_each(table: Any) -> Any:
    """A flat_map's function, importable."""
    return [*range(table.num_rows), *range(table.num_rows)], {"n": [*table["src"].to_pylist()] * 2}


def largest(key: tuple[Any, ...], rows: list[Any]) -> list[tuple[Any, ...]]:
    """A reducer, importable."""
    return [(max(row[0] for row, _ in rows),)]


def reach(edges: kpg.Collection) -> kpg.Collection:
    return edges.iterate(
        lambda seen: seen.join(edges, on={"dst": "src"}).select("src", dst=col("dst_right")).concat(edges).distinct()
    )


def even_and_odd(edges: kpg.Collection) -> kpg.Collection:
    """Mutual recursion, a loop in a loop, and a row that enters late."""
    nodes = edges.select(n=col("src")).distinct()
    with edges.db.loop("outer") as outer:
        even = outer.variable(nodes)
        odd = outer.variable(n=int)
        late = outer.enter(nodes, at=col("n") % 3)
        odd.set(even.join(edges, on={"n": "src"}).select(n=col("dst")).concat(late).distinct())
        inner = odd.iterate(lambda now: now.join(edges, on={"n": "src"}).select(n=col("dst")).concat(odd).distinct())
        even.set(inner.concat(nodes).distinct())
        return outer.leave(even)


def generations(edges: kpg.Input, joins: str) -> kpg.Collection:
    """A recursion by delta queries, with a constant and a negation."""
    declared = ".decl e(src: number, dst: number)\n.input e\n.decl s(x: number, y: number)\n.output s\n"
    rules = "s(x, y) :- e(1, x), e(x, y), !e(y, x). s(x, y) :- e(a, x), s(a, b), e(b, y)."
    program = compile(parse(declared + rules))
    return LoweredProgram(edges.db, program, joins=joins, inputs={"e": edges}).collections["s"]


def recursion(edges: kpg.Input) -> kpg.Collection:
    """A recursion of two relations as one operator."""
    declared = ".decl e(src: number, dst: number) input\n.decl p(x: number, y: number)\n.decl q(x: number)\n.output q\n"
    rules = "p(x, y) :- e(x, y). p(x, z) :- p(x, y), !e(z, y), e(y, z), x != z. q(x) :- p(x, 2). p(x, x) :- q(x)."
    collections = LoweredProgram(edges.db, compile(parse(declared + rules)), inputs={"e": edges}).collections
    assert isinstance(collections["q"].node, SaturatedNode)
    return collections["q"].join(collections["p"], on="x")


PROGRAMS = {
    "linear": lambda e: e.filter((col("src") > 0) & ~(col("dst") == 2)).select(a=col("src") * 2 - 1, b=col("dst")),
    "text": lambda e: e.select(t=col("src").cast(str).str.concat("-", col("dst").cast(str))).filter(
        col("t").is_in(["1-2", "0-1", "2-2"])
    ),
    "choice": lambda e: e.select(c=when(col("src") > 1, "up").when(col("src") < 1, "down").otherwise("same")),
    "flat_map": lambda e: e.flat_map(twice_each, n=int),
    "udf": lambda e: e.select(h=kpg.udf(np.hypot, returns=float)(col("src"), col("dst"))),
    "join": lambda e: e.join(e.rename(src="dst", dst="end"), on="dst").select("src", "end"),
    "outer join": lambda e: e.join(e.rename(src="dst", dst="end"), "dst", "full", where=col("src") < col("end")),
    "statistics": lambda e: e.group_by("src").aggregate(
        q=col("dst").quantile(0.5), t=col("dst").cast(str).string_agg(",", order="-dst"), n=col("dst").count_distinct()
    ),
    "one row": lambda e: e.aggregate(n="count", most=col("dst").max()),
    "values": lambda e: e.db.values([(1, 0.5, datetime.date(2020, 2, 29))], src=int, f=float, d="date").join(e, "src"),
    "antijoin": lambda e: e.antijoin(e.filter(col("dst") > 1), on="src"),
    "sums": lambda e: e.group_by("src").aggregate(n="count", s=("sum", "dst"), m=("avg", "dst")),
    "first": lambda e: e.group_by("src").top_k(2, by="-dst"),
    "hierarchical": lambda e: e.group_by("src").argmin("dst", hierarchical=True),
    "reducer": lambda e: e.group_by("src").reduce(largest, most=int),
    "threshold": lambda e: e.threshold(2).negate().explode("dst"),
    "delay": lambda e: e.delay(col("src")).consolidate(),
    "arranged": lambda e: e.arrange("dst").join(e, on={"dst": "src"}),
    "reach": reach,
    "mutual": even_and_odd,
    "recursion": lambda edges: recursion(edges),
    "delta": lambda edges: generations(edges, "delta"),
    "hector": lambda edges: generations(edges, "hector"),
}


@pytest.mark.parametrize("name", PROGRAMS)
@given(epochs=st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=5), min_size=1, max_size=2))
def test_a_plan_read_back_gives_the_same_answer(name: str, epochs: list[list[tuple[int, int]]]) -> None:
    with kpg.open() as db:
        edges = db.input("edges", src=int, dst=int)
        collection = PROGRAMS[name](edges)
        original, copy = collection.output(), again(collection).output()
        for rows in epochs:
            edges.insert(rows)
            db.advance()
            assert sorted(copy.changes(), key=repr) == sorted(original.changes(), key=repr)


VALUES = [
    None, True, 7, -(2**62), 0.1, math.inf, -0.0, "text", b"\x00\xff", datetime.date(2020, 2, 29),
    datetime.datetime(2020, 2, 29, 1, 2, 3, 4), decimal.Decimal("-1.50"), np.int64(3), np.float64(2.5),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_constant_comes_back_as_it_was(value: Any) -> None:
    constant = plan_values.read_constant(json.loads(json.dumps(plan_values.write_constant(value))))
    assert constant == value and repr(constant) == repr(value.item() if isinstance(value, np.generic) else value)


def test_an_expression_comes_back_as_it_was() -> None:
    for expression in (
        (col("a") + lit(1.5)).named("x"),
        col("t").str.replace("a", "b").str.substring(1, 2).cast("decimal(10,2)?"),
        kpg.coalesce(col("a"), kpg.min_of(col("b"), 3)).is_null() | col("d").dt.year().is_in([1, 2]),
    ):
        written = json.loads(json.dumps(plan_values.write_expression(expression)))
        assert plan_values.read_expression(written).structure() == expression.structure()


def test_functions_that_cannot_be_imported_are_refused() -> None:
    with kpg.open() as db:
        edges = db.input("edges", src=int, dst=int)
        for function in (lambda table: table, Host(db).refer):
            with pytest.raises(BadPlan, match="cannot be sent to workers"):
                plan_document.write(edges.flat_map(function, n=int).node, id)


def test_what_is_no_plan_is_refused() -> None:
    host: Any = None
    for written in (
        {"nodes": [], "loops": [], "root": 0},
        {"nodes": [{"kind": "os.system"}], "loops": [], "root": 0},
        {"nodes": [{"kind": "Filter"}], "loops": [], "root": 0},
        {"loops": []},
    ):
        with pytest.raises(ProtocolError):
            plan_document.read(written, host)
    with pytest.raises(BadPlan, match="cannot import"):
        plan_values.function_of_name("no.such.module:f")

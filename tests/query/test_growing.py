"""Which recursions are one operator, and which go round in a loop through shared indexes."""

import kpg
from kpg.plan import nodes
from kpg.query.datalog import parse
from kpg.query.ir.compile import compile
from kpg.query.lower import program as lowering
from kpg.query.running import Running

REACH = """
.decl e(x: number, y: number)
.input e
.decl from(x: number)
.input from
.decl reach(x: number)
.output reach
reach(x) :- from(x).
reach(y) :- reach(x), e(x, y).
"""
CLOSURE = """
.decl e(x: number, y: number)
.input e
.decl tc(x: number, y: number)
.output tc
tc(x, y) :- e(x, y).
tc(x, z) :- tc(x, y), e(y, z).
"""
EDGES = [(n, n + 1) for n in range(20)]


def run(text, db):
    edges = db.input("e", x=int, y=int)
    edges.insert(EDGES)
    return Running(db, compile(parse(text)), inputs={"e": edges})


def one_operator(running, name):
    return isinstance(running.collections[name].node, nodes.Saturated)


def test_a_recursion_from_few_rows_through_a_large_relation_shares_its_index(monkeypatch):
    monkeypatch.setattr(lowering, "LARGE", len(EDGES) - 1)
    with kpg.open() as db:
        running = run(REACH, db)
        assert not one_operator(running, "reach")
        running.inputs["from"].insert([(15,)])
        db.advance()
        assert sorted(running.rows("reach")) == [(n,) for n in range(15, 21)]


def test_a_recursion_through_a_small_relation_is_one_operator(monkeypatch):
    monkeypatch.setattr(lowering, "LARGE", len(EDGES))
    with kpg.open() as db:
        running = run(REACH, db)
        assert one_operator(running, "reach")
        running.inputs["from"].insert([(15,)])
        db.advance()
        assert sorted(running.rows("reach")) == [(n,) for n in range(15, 21)]


def test_a_recursion_that_reads_everything_anyway_is_one_operator(monkeypatch):
    monkeypatch.setattr(lowering, "LARGE", 0)
    with kpg.open() as db:
        running = run(CLOSURE, db)
        assert one_operator(running, "tc")
        db.advance()
        assert len(running.rows("tc")) == 20 * 21 // 2

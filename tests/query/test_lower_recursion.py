"""Which recursions are one operator, and which are loops that use shared indexes."""

import pytest

import kpg
from kpg.plan import nodes
from kpg.query.datalog import parse
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile
from kpg.query.lower import lower_program as lowering
from kpg.testing.datalog_oracle import evaluate

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
    return InstalledProgram(db, compile(parse(text)), inputs={"e": edges})


def one_operator(installed, name):
    return isinstance(installed.collections[name].node, nodes.SaturatedNode)


def test_a_recursion_from_few_rows_through_a_large_relation_shares_its_index(monkeypatch):
    monkeypatch.setattr(lowering, "SEEDED_READ_ROWS", len(EDGES) - 1)
    with kpg.open() as db:
        installed = run(REACH, db)
        assert not one_operator(installed, "reach")
        installed.inputs["from"].insert([(15,)])
        db.advance()
        assert sorted(installed.rows("reach")) == [(n,) for n in range(15, 21)]


def test_a_recursion_through_a_small_relation_is_one_operator(monkeypatch):
    monkeypatch.setattr(lowering, "SEEDED_READ_ROWS", len(EDGES))
    with kpg.open() as db:
        installed = run(REACH, db)
        assert one_operator(installed, "reach")
        installed.inputs["from"].insert([(15,)])
        db.advance()
        assert sorted(installed.rows("reach")) == [(n,) for n in range(15, 21)]


def test_a_recursion_that_reads_everything_anyway_is_one_operator(monkeypatch):
    monkeypatch.setattr(lowering, "SEEDED_READ_ROWS", 0)
    with kpg.open() as db:
        installed = run(CLOSURE, db)
        assert one_operator(installed, "tc")
        db.advance()
        assert len(installed.rows("tc")) == 20 * 21 // 2


TEXTS = """
.decl e(x: symbol, y: symbol)
.input e
.decl u(x: symbol)
.input u
.decl k(x: symbol, y: symbol)
.decl p(x: symbol, y: symbol)
.output p
k(x, cat(x, "s")) :- u(x).
p(x, y) :- e(x, y).
p(x, z) :- p(x, y), k(y, z), z != "never".
p(x, "end") :- p(x, "start"), e(_, x).
"""


@pytest.mark.parametrize("insert_only", [False, True])
def test_symbols_that_only_the_recursion_holds_are_not_reclaimed(insert_only):
    """Symbols of its rules, and symbols computed for it that no answer holds yet."""
    program = parse(TEXTS)
    rows = {"u": [("a",), ("b",)], "e": [("new1", "new2"), ("new3", "new4"), ("x", "a"), ("a", "start"), ("x", "as")]}
    rows["e"] += [("b", "a"), ("new4", "x"), ("bs", "b")]
    with kpg.open() as db, InstalledProgram(db, compile(program), insert_only=insert_only) as installed:
        assert one_operator(installed, "p")
        for name, row in [(name, row) for name, relation_rows in rows.items() for row in relation_rows]:
            installed.inputs[name].insert([row])
            db.advance()
            db.reclaim()
        assert sorted(installed.rows("p")) == sorted(evaluate(program, rows)["p"])
        if not insert_only:
            installed.inputs["e"].remove(rows["e"])
            installed.inputs["u"].remove(rows["u"])
            db.advance()
            db.advance()
            assert db.reclaim() == len(
                {text for relation in rows.values() for row in relation for text in row} - {"start"}
            )

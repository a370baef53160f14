"""Delta queries in hard cases: inside mutual recursion, and with indexes of both directions of one relation."""

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import kpg
from kpg.operators.half_join import HalfJoin
from kpg.query.datalog import parse
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile
from kpg.testing.datalog_oracle import evaluate

DECLARATIONS = """
.decl e(a: number, b: number)
.input e
.decl f(a: number, b: number)
.input f
.decl p(a: number, b: number)
.output p
.decl q(a: number, b: number)
.output q
p(x, y) :- e(x, y), f(y, _).
"""
P_FROM_Q = (
    "p(x, z) :- q(x, y), q(y, z), e(x, z).",
    "p(x, y) :- q(x, y), e(y, x), f(x, y).",
    "p(x, z) :- p(x, y), q(y, z), f(z, x).",
)
Q_FROM_P = (
    "q(x, z) :- p(x, y), e(y, z), f(x, z).",
    "q(y, x) :- p(x, y), p(y, z), e(x, z).",
    "q(x, y) :- p(x, y), p(y, x), !f(x, x).",
)
PAIRS = st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=9)
EPOCHS = st.lists(st.fixed_dictionaries({"e": PAIRS, "f": PAIRS}), min_size=2, max_size=4)


def some(rules):
    return st.lists(st.sampled_from(rules), min_size=1, max_size=2, unique=True)


@settings(max_examples=20, deadline=None)
@given(some(P_FROM_Q), some(Q_FROM_P), EPOCHS, st.sampled_from(["delta", "hector"]))
def test_delta_joins_inside_mutual_recursion_agree_with_the_oracle(to_p, to_q, epochs, joins):
    """A17.8: p and q derive each other by joins of three atoms, and all inputs change at the same time."""
    text = DECLARATIONS + "\n".join([*to_p, *to_q])
    note(text)
    program = parse(text)
    with kpg.open() as db, InstalledProgram(db, compile(program), joins=joins) as installed:
        now = {"e": set(), "f": set()}
        for state in epochs:
            for name, rows in state.items():
                installed.inputs[name].insert(sorted(rows - now[name]))
                installed.inputs[name].remove(sorted(now[name] - rows))
            now = state
            db.advance()
            expected = evaluate(program, now)
            for name in ("p", "q"):
                assert installed.rows(name) == sorted(expected[name])
        operators = [operator for dataflow in db.worker.dataflows.values() for operator in dataflow.operators]
        assert any(isinstance(operator, HalfJoin) for operator in operators)


TRIANGLES = """
.decl e(a: number, b: number)
.input e
.decl p(a: number, b: number, c: number)
.output p
p(x, y, z) :- e(x, y), e(y, z), e(x, z).
"""
HUB = 1_000  # edges of a hub


@pytest.mark.parametrize("hub_is", ["source", "target"])
def test_the_forward_and_the_reverse_index_each_count_propose_and_validate(hub_is):
    """A7.6: a new edge (x, z) is extended by y from e(x, y) or e(y, z); the index with fewer rows proposes.

    One end of the edge is a hub. Either index must be able to count and to propose, or a thousand rows are proposed;
    the other index must validate, or the answer is wrong.
    """
    program = compile(parse(TRIANGLES))
    with kpg.open() as db, InstalledProgram(db, program, distinct_inputs=False, joins="hector") as installed:
        edges = installed.inputs["e"]
        x, z, ys = 1, 2, (10, 11)
        edges.insert([(x, y) for y in ys] + [(ys[0], z)])
        fan = range(100, 100 + HUB)
        edges.insert([(x, node) for node in fan] if hub_is == "source" else [(node, z) for node in fan])
        db.advance()
        indexes = {tuple(entry["columns"]) for entry in db.describe()["arrangements"] if len(entry["columns"]) == 2}
        assert indexes == {("a: int64", "b: int64"), ("b: int64", "a: int64")}  # for all three pipelines
        operators = [operator for dataflow in db.worker.dataflows.values() for operator in dataflow.operators]
        half_joins = [operator for operator in operators if isinstance(operator, HalfJoin)]
        before = sum(operator.proposed for operator in half_joins)
        edges.insert([(x, z)])
        db.advance()
        assert installed.rows("p") == [(x, ys[0], z)]
        assert 0 < sum(operator.proposed for operator in half_joins) - before <= 10

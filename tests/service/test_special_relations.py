"""Rules with special relations in a service: their answers follow every transaction, as those of a program do."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpg
from kpg.query.datalog import parse
from kpg.service import Change, Service
from kpg.testing.datalog_oracle import evaluate

RULES = {
    "same": ".decl same(x: number, y: number) eqrel\nsame(x, y) :- edge(x, y).",
    "least": ".decl least(x: number, y: number)\nleast(x, min(y)) :- edge(x, y).",
    "best": ".decl best(x: number, y: number)\nbest(x, y) :- edge(x, y).\nbest(x, y) <= best(x, z) :- y < z.",
    "pair": ".decl pair(x: number, p: P)\n.type P = [a: number, b: number]\npair(x, [x, y]) :- edge(x, y).",
}
PROGRAM = ".decl edge(x: number, y: number)\n.input edge\n"
ROWS = st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=5)


@pytest.mark.parametrize("name", ["same", "least", "best"])
def test_answers_follow_every_transaction(service_on, workers, name):
    program = parse(f"{PROGRAM}{RULES[name]}\n.output {name}")

    @settings(max_examples=10 if workers == 1 else 3, deadline=None)
    @given(st.lists(ROWS, min_size=1, max_size=4))
    def check(states):
        with service_on(workers) as service:
            service.create_relation("edge", {"x": int, "y": int})
            service.register(RULES[name])
            interest = service.interest(name)
            before, held = set(), {}
            for state in states:
                came, went = state - before, before - state
                service.transact([Change("edge", row, 1) for row in came] + [Change("edge", row, -1) for row in went])
                before = state
                for row, _, diff in interest.take():
                    held[row] = held.get(row, 0) + diff
                assert {row for row, count in held.items() if count} == evaluate(program, {"edge": state})[name]

    check()


def test_records_are_values_of_answers():
    with kpg.open() as db:
        service = Service(db)
        service.create_relation("edge", {"x": int, "y": int})
        service.register(RULES["pair"])
        service.transact([Change("edge", (1, 2))])
        (row,) = service.query("pair").to_pylist()
        assert row["x"] == 1 and str(row["p"]) == "[1, 2]"

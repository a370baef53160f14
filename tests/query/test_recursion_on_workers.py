"""Recursions in one operator on several workers: the rows of one worker's loop, at every time, A6.6, A7.2, A8.4."""

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import kpg
from kpg.operators.saturate import Saturate
from kpg.plan import nodes
from kpg.query.datalog import parse
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile
from kpg.query.lower.lower_program import LoweredProgram
from kpg.seminaive.division import division_of
from kpg.testing.simulated_workers import SimulatedCluster, SimulatedTransport
from tests.query.test_maintained_recursion import HEAD, INPUTS, RECURSIONS, changes

DIVIDED = {
    "label column": (0, None),
    "keys of two columns": (0, None, None),
    "two atoms": (0, None),
    "two atoms and a label": (1,),
    "negation": (0, None, None, 0),
    "comparisons": (0, None),
    "own relation of a value": (0, 0),
    "two relations": (0, 1, None),
    "texts": (0, None),
}
PROGRAMS = RECURSIONS | {
    "same generation": """.decl p(x: number, y: number)
        p(x, y) :- e(a, x), e(a, y), x != y. p(x, y) :- e(a, x), p(a, b), e(b, y).""",
    "own relation of a value": """.decl p(x: number, l: symbol, y: number)
        p(x, l, y) :- f(x, l, y). p(x, l, y) :- p(x, l, z), g(x, _, z, _), p(x, _, y), g(x, _, y, 1).""",
    "two relations": """.decl p(x: number, y: number)
        .decl q(x: number, y: number)
        p(x, y) :- e(x, y). q(z, x) :- p(x, y), e(y, z). p(x, z) :- q(y, x), e(y, z).""",
    "texts": """.decl p(x: number, l: symbol, y: number)
        p(x, l, y) :- f(x, l, y). p(x, "b", z) :- p(x, "a", y), f(y, l, z), l != "c".
        p(x, l, z) :- p(x, l, y), f(y, "b", z), !f(z, "a", x), l = "b".""",
    "reachable": """.decl p(x: number)
        p(x) :- s(x). p(y) :- p(x), e(x, y).""",
}


def compiled(name):
    return compile(parse(f"{HEAD}{PROGRAMS[name]}\n.output p"))


def build_on_workers(program, workers, **options):
    def build(db):
        lowered = LoweredProgram(db, program, distinct_inputs=False, **options)
        output = lowered.collections["p"].output("p")
        for source in lowered.inputs.values():
            source.base()
        return output

    return SimulatedCluster(workers, build)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("workers", [2, 3])
@settings(max_examples=6, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(history=changes, schedule=st.lists(st.integers(0, 2), max_size=20))
def test_workers_derive_what_a_loop_derives(name, workers, history, schedule):
    """Rows are inserted and removed at any worker, and workers run in any order."""
    program = compiled(name)
    cluster = build_on_workers(program, workers)
    with kpg.open() as db, InstalledProgram(db, program, distinct_inputs=False, joins="binary") as loop:
        assert not isinstance(loop.collections["p"].node, nodes.SaturatedNode)
        held = {of: set() for of in INPUTS}
        turn = 0
        for *states, _ in history:
            for of, rows in zip(INPUTS, states, strict=True):
                if of not in loop.inputs:
                    continue
                loop.inputs[of].remove(sorted(held[of] - rows))
                loop.inputs[of].insert(sorted(rows - held[of]))
                for row, diff in [*((row, -1) for row in held[of] - rows), *((row, 1) for row in rows - held[of])]:
                    turn += 1
                    cluster.insert(turn % workers, of, row, diff)
                held[of] = rows
            db.advance()
            cluster.advance(schedule)
            assert cluster.answer() == dict.fromkeys(map(tuple, loop.rows("p")), 1)


@pytest.mark.parametrize("name", ["label column", "two atoms", "same generation", "comparisons"])
@settings(max_examples=5, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(rows=st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30))
def test_insert_only_programs(name, rows):
    program = compiled(name)
    cluster = build_on_workers(program, 2, insert_only=True)
    with kpg.open() as db, InstalledProgram(db, program, distinct_inputs=False, joins="binary") as loop:
        for number, (x, y) in enumerate(sorted(rows)):
            for of, row in (("e", (x, y)), ("f", (x, "ab"[y % 2], y))):
                if of in loop.inputs:
                    loop.inputs[of].insert([row])
                    cluster.insert(number % 2, of, row)
            if number % 7 == 6:
                cluster.advance()
        db.advance()
        cluster.advance()
        assert cluster.answer() == dict.fromkeys(map(tuple, loop.rows("p")), 1)


def system_of(program):
    with kpg.open() as db:
        node = LoweredProgram(db, program, distinct_inputs=False).collections["p"].node
        assert isinstance(node, nodes.SaturatedNode)
        return node.saturation.system


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_recursion_is_divided_by_a_column_that_its_rules_keep(name):
    division = division_of(system_of(compiled(name)))
    assert (None if division is None else division.columns) == DIVIDED.get(name)


def test_the_explanation_names_the_column_or_says_that_one_worker_derives_all():
    for name, expected in {
        "two atoms": "one operator: each worker derives the rows of its values of p.x",
        "same generation": "one operator: one worker derives all rows: no column stays the same in all rules",
    }.items():
        cluster = build_on_workers(compiled(name), 2)
        notes = [note for flow in cluster.workers[1].dataflows.values() for note in flow.notes]
        assert any(expected in note for note in notes)


@pytest.mark.parametrize("name", ["negation", "texts"])
def test_rules_with_texts_are_one_operator_on_several_workers(name):
    """A text has another number in each process, so it is a row of a relation there."""
    cluster = build_on_workers(compiled(name), 2)
    names = [operator.name for flow in cluster.workers[0].dataflows.values() for operator in flow.operators]
    assert any(name.startswith("saturate") for name in names) and "values" in names


def test_peers_know_the_rows_for_them_before_a_step_that_may_take_long(monkeypatch):
    """Workers derive at the same time, not each after the one that sent it an edge."""
    program = compile(
        parse(f"{HEAD}.decl p(x: number, y: number)\np(x, y) :- e(x, y). p(x, z) :- p(x, y), e(y, z).\n.output p")
    )
    events = []

    def record(cls, method, worker_of):
        plain = getattr(cls, method)

        def call(self, *args):
            events.append((method, worker_of(self)))
            return plain(self, *args)

        monkeypatch.setattr(cls, method, call)

    record(SimulatedTransport, "send_data", lambda transport: transport.index)
    record(SimulatedTransport, "broadcast", lambda transport: transport.index)
    record(Saturate, "process", lambda operator: operator.dataflow.worker.index)
    cluster = build_on_workers(program, 2)
    cluster.advance()
    senders = set()
    for node in range(8):
        events.clear()
        cluster.insert(node % 2, "e", (node, node + 1))
        cluster.advance()
        for worker in (0, 1):
            own = [event for event, index in events if index == worker]
            before = own[: own.index("process")]
            if "send_data" in before:
                senders.add(worker)
                assert before[-1] == "broadcast"
    assert senders == {0, 1}
    assert len(cluster.answer()) == 36

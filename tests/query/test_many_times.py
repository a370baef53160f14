"""Recursions and joins of many atoms under changes at many times: correct at each time, also when read later.

Rows are inserted twice, removed before they are inserted, and inserted and removed at the same time; programs are
installed before or after. Answers are read as of every time that is kept.
"""

from collections import Counter

from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st

import kpg
from kpg.plan import nodes
from kpg.query.datalog import parse
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile
from kpg.testing.datalog_oracle import evaluate
from tests.query.test_delta_pipelines import DECLARED, INPUTS, bodies

QUICK = {"phases": [Phase.explicit, Phase.reuse, Phase.generate]}
VALUES = (0, 1, 2, 3, -7, 10**14)
FEW = VALUES[:4]
HEAD = """
.decl e(a: number, b: number)
.input e
.decl u(a: number)
.input u
.decl p(a: number, b: number)
.output p
.decl q(a: number)
.output q
.decl r(a: number, b: number)
.output r
"""
STARTS = (
    "p(x, y) :- e(x, y).",
    "p(x, y) :- e(y, x), u(x).",
    "p(1, x) :- u(x), !e(x, x).",
    "q(x) :- u(x).",
    "q(x) :- e(x, 2).",
    "p(0, 1).",
)
RECURSIONS = (
    "p(x, z) :- p(x, y), e(y, z).",
    "p(x, z) :- e(x, y), p(y, z), u(z).",
    "p(x, y) :- e(a, x), p(a, b), e(b, y).",
    "q(y) :- q(x), e(x, y).",
    "q(y) :- p(x, y), e(y, x), x <= y.",
    "p(x, y) :- q(x), e(y, x), x != y.",
    "p(y, x) :- p(x, y), e(_, x), u(_).",
    "p(x, 2) :- p(1, x), e(x, x).",
    "p(x, x) :- q(x).",
)
ABOVE = (
    "r(x, y) :- p(x, y), !e(x, y).",
    "r(x, z) :- r(x, y), p(y, z).",
    "r(y, x) :- r(x, y), q(x).",
    "r(x, x) :- q(x).",
)


def some(rules, least, most):
    return st.lists(st.sampled_from(rules), min_size=least, max_size=most, unique=True)


def phases(arities, values):
    """Draw phases: changes (relation, row, delay in epochs, diff), and the number of epochs to advance afterwards."""
    rows = [
        st.tuples(
            st.just(name),
            st.tuples(*[st.sampled_from(values)] * arity),
            st.integers(0, 3),
            st.sampled_from([1, 1, 1, -1, -1, 2]),
        )
        for name, arity in arities.items()
    ]
    return st.lists(st.tuples(st.lists(st.one_of(rows), max_size=12), st.integers(1, 5)), min_size=1, max_size=3)


@st.composite
def recursions(draw):
    """Draw recursions on top of or beside each other, with mostly linear rules."""
    rules = [*draw(some(STARTS, 1, 2)), *draw(some(RECURSIONS, 1, 3)), *draw(some(ABOVE, 0, 3))]
    return HEAD + "\n".join(rules), {"e": 2, "u": 1}, draw(phases({"e": 2, "u": 1}, VALUES))


@st.composite
def joins_of_many(draw):
    """Draw rules of several atoms, recursive or not."""
    own = draw(st.booleans())
    rules = [draw(bodies(own)) for _ in range(draw(st.integers(1, 2)))] + (["p(x, x) :- u(x)."] if own else [])
    return DECLARED + "\n".join(rules), INPUTS, draw(phases(INPUTS, FEW))


def held(arities, updates, time):
    """Return the rows of the inputs at a time, as sets."""
    counts = {name: Counter() for name in arities}
    for name, row, at, diff in updates:
        counts[name][row] += diff if at <= time else 0
    return {name: {row for row, count in rows.items() if count > 0} for name, rows in counts.items()}


def check(question, joins, first, history):
    """Install a program before some phase, and compare its answers at all times with the oracle's."""
    text, arities, worked = question
    program, updates, installed = parse(text), [], None
    with kpg.open(history=history) as db:
        inputs = {name: db.input(name, **dict.fromkeys("abc"[:arity], int)) for name, arity in arities.items()}
        for number, (changes, by) in enumerate(worked):
            if number == min(first, len(worked) - 1):
                installed, began = InstalledProgram(db, compile(program), inputs=dict(inputs), joins=joins), db.epoch
                installed.insert_facts()
            for name, row, later, diff in changes:
                inputs[name].update_at([row], db.epoch + later, diff)
                updates.append((name, row, db.epoch + later, diff))
            db.advance_to(db.epoch + by)
            if installed is None:
                continue
            stated = 0 if history is None and not program.facts else began
            oldest = stated if history is None else max(stated, db.epoch - 1 - history)
            for time in range(oldest, db.epoch):
                expected = evaluate(program, held(arities, updates, time))
                for name, answer in installed.answers.items():
                    assert rows_of(answer.scan(as_of=time)) == sorted(expected[name]), (name, time)
        assert installed is not None
        return installed


def rows_of(table):
    return sorted(zip(*[column.to_pylist() for column in table.columns], strict=True))


@settings(max_examples=50, **QUICK)
@given(recursions(), st.integers(0, 2), st.sampled_from([0, 2, None]))
def test_recursions_are_correct_at_every_time(question, first, history):
    """A6.8 A8.4: as one operator where possible."""
    note(question[0])
    check(question, "auto", first, history)


@settings(max_examples=40, **QUICK)
@given(joins_of_many(), st.sampled_from(["delta", "hector"]), st.integers(0, 2), st.sampled_from([0, 2, None]))
def test_joins_of_many_atoms_are_correct_at_every_time(question, joins, first, history):
    """A10.1 A11.9: also in recursion."""
    note(question[0])
    check(question, joins, first, history)


def test_a_recursion_over_a_recursion_is_two_operators():
    """The output of the first is the input of the second, at each of several times."""
    text = HEAD + "\n".join([STARTS[0], RECURSIONS[0], *ABOVE[:2]])
    changes = [("e", (n, n + 1), n % 4, 1) for n in range(6)] + [("e", (2, 3), 3, -1), ("e", (4, 5), 0, 1)]
    installed = check((text, {"e": 2, "u": 1}, [(changes, 3), ([("e", (4, 5), 1, -2)], 2)]), "auto", 0, None)
    assert all(isinstance(installed.collections[name].node, nodes.SaturatedNode) for name in ("p", "r"))

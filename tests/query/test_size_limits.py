"""`.limitsize`: a recursion stops at a size, in the same round at which a plain evaluation would stop."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpg
from kpg.query.datalog import parse
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile
from tests.query.input_states import advance_through

PATH = """
.decl e(x: number, y: number)
.input e
.decl p(x: number, y: number)
.output p
p(x, y) :- e(x, y).
p(x, z) :- p(x, y), e(y, z).
"""


def limited_paths(edges: set[tuple[int, int]], rows: int) -> set[tuple[int, int]]:
    """Return the paths, by rounds that end at a number of rows."""
    paths: set[tuple[int, int]] = set()
    while len(paths) < rows:
        more = paths | edges | {(x, z) for x, y in paths for other, z in edges if y == other}
        if more == paths:
            break
        paths = more
    return paths


EDGES = st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=8)


@settings(max_examples=15)
@given(st.lists(EDGES, min_size=1, max_size=3), st.integers(1, 20))
def test_a_recursion_stops_when_it_has_the_rows(states, rows):
    program = compile(parse(f"{PATH}.limitsize p(n={rows})"))
    with kpg.open() as db, InstalledProgram(db, program) as installed:
        for state in advance_through(db, installed, ({"e": edges} for edges in states)):
            assert set(installed.rows("p")) == limited_paths(state["e"], rows)


def test_the_example_of_the_manual_has_47_rows_and_ends_without_a_bound():
    text = ".decl a(x: number)\na(1).\na(x + 1) :- a(x).\n.output a\n.limitsize a(n=47)"
    with kpg.open() as db, InstalledProgram(db, compile(parse(text))) as installed:
        installed.insert_facts()
        db.advance()
        assert installed.rows("a") == [(value,) for value in range(1, 48)]


@pytest.mark.parametrize(("directive", "kind", "column", "words"), [
    (".limitsize q(n=5)", kpg.UndefinedName, 12, "no relation is called 'q'"),
    (".limitsize p", kpg.ParseError, 13, "expected the limit, as in"),
    (".limitsize p(n=many)", kpg.ParseError, 12, "a size limit is a number n of rows"),
    (".limitsize p(m=3)", kpg.ParseError, 12, "a size limit is a number n of rows"),
])  # fmt: skip
def test_wrong_limits_are_refused(directive, kind, column, words):
    with pytest.raises(kind, match=words) as caught:
        compile(parse(f".decl p(x: number)\n{directive}"))
    assert (caught.value.line, caught.value.column) == (2, column)

"""Classes under changes equal the classes of the pairs present, and most values keep theirs."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpg
from kpg.operators import maintain_classes as module
from kpg.query.lower.equivalence_classes import equivalence_classes
from kpg.testing.special_relations import equivalence

PAIRS = st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=10)


@pytest.mark.parametrize("least", [0, 1000])
@settings(max_examples=40, deadline=None)
@given(epochs=st.lists(PAIRS, min_size=1, max_size=4))
def test_classes_are_those_of_the_pairs_present(least, epochs):
    before_limit, module.MIN_PASS_PAIRS = module.MIN_PASS_PAIRS, least
    try:
        with kpg.open() as db:
            pairs = db.input("pairs", x=int, y=int)
            classes = equivalence_classes(pairs.distinct(), "x", "class").output("classes")
            before: set = set()
            for state in epochs:
                pairs.insert(sorted(state - before))
                pairs.remove(sorted(before - state))
                before = state
                db.advance()
                rows = classes.rows()
                named = dict(rows)
                assert len(named) == len(rows)
                together = {(v, w) for v in named for w in named if named[v] == named[w]}
                assert together == equivalence(state)
    finally:
        module.MIN_PASS_PAIRS = before_limit


def test_a_small_class_that_joins_a_large_one_changes_alone():
    with kpg.open() as db:
        pairs = db.input("pairs", x=int, y=int)
        classes = equivalence_classes(pairs.distinct(), "x", "class").output("classes")
        pairs.insert([(x, x + 1) for x in range(10, 2000)])
        pairs.insert([(0, 1)])
        db.advance()
        list(classes.changes())
        pairs.insert([(1, 500)])
        db.advance()
        assert {row[0] for row, _, _ in classes.changes()} == {0, 1}

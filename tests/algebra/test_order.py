"""Times form a lattice under the product order (A2.2)."""

from hypothesis import given
from hypothesis import strategies as st

from kpg.algebra.order import join, least, less_equal, meet
from kpg.testing.strategies import depths, times

pairs = depths().flatmap(lambda depth: st.tuples(times(depth), times(depth)))
triples = depths().flatmap(lambda depth: st.tuples(times(depth), times(depth), times(depth)))


@given(triples)
def test_less_equal_is_a_partial_order(chosen):
    """A2.2: reflexive, antisymmetric, transitive."""
    a, b, c = chosen
    assert less_equal(a, a)
    assert not (less_equal(a, b) and less_equal(b, a)) or a == b
    assert not (less_equal(a, b) and less_equal(b, c)) or less_equal(a, c)


@given(triples)
def test_join_is_the_least_upper_bound(chosen):
    """A2.2: at or after both, and at or before every other such time."""
    a, b, c = chosen
    assert less_equal(a, join(a, b)) and less_equal(b, join(a, b))
    assert (less_equal(a, c) and less_equal(b, c)) == less_equal(join(a, b), c)


@given(triples)
def test_meet_is_the_greatest_lower_bound(chosen):
    """A2.2: at or before both, and at or after every other such time."""
    a, b, c = chosen
    assert less_equal(meet(a, b), a) and less_equal(meet(a, b), b)
    assert (less_equal(c, a) and less_equal(c, b)) == less_equal(c, meet(a, b))


@given(triples)
def test_join_and_meet_are_lattice_operations(chosen):
    """A2.2: commutative, associative, idempotent, absorbing; and distributive, as products of chains are."""
    a, b, c = chosen
    for op, other in ((join, meet), (meet, join)):
        assert op(a, b) == op(b, a)
        assert op(op(a, b), c) == op(a, op(b, c))
        assert op(a, a) == a
        assert op(a, other(a, b)) == a
        assert op(a, other(b, c)) == other(op(a, b), op(a, c))


@given(pairs)
def test_order_join_and_meet_agree(chosen):
    """A2.2: a <= b iff their join is b iff their meet is a."""
    a, b = chosen
    assert less_equal(a, b) == (join(a, b) == b) == (meet(a, b) == a)


@given(pairs)
def test_sorting_by_lexicographic_order_is_sound(chosen):
    """A2.2: lexicographic order extends the product order, so no time sorts after one that it precedes."""
    a, b = chosen
    assert not less_equal(a, b) or a <= b


@given(depths().flatmap(times))
def test_no_time_is_before_the_least(time):
    assert less_equal(least(len(time)), time)


def test_times_may_be_incomparable():
    """A2.2: neither of (0, 1) and (1, 0) precedes the other."""
    assert not less_equal((0, 1), (1, 0)) and not less_equal((1, 0), (0, 1))

"""Frontiers bound the times of future updates, and only advance (A1.7)."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpg.algebra.frontier import CLOSED, Frontier
from kpg.algebra.order import join, less_equal
from kpg.testing.strategies import advances, depths, frontiers, sinces, times

two = depths().flatmap(lambda depth: st.tuples(frontiers(depth), frontiers(depth), times(depth, 4)))


def everywhere(depth):
    """Return all times of a grid larger than every frontier that the strategies generate."""
    return product(range(5), repeat=depth)


@given(depths().flatmap(lambda depth: st.lists(times(depth), max_size=6)))
def test_a_frontier_is_the_antichain_of_its_least_times(chosen):
    """A1.7: elements are incomparable, and every time given is beyond them."""
    frontier = Frontier(chosen)
    assert set(frontier) <= set(chosen)
    assert all(a == b or not less_equal(a, b) for a in frontier for b in frontier)
    assert all(frontier.beyond(time) for time in chosen)


@given(depths().flatmap(lambda depth: st.tuples(frontiers(depth), times(depth), times(depth))))
def test_beyond_is_at_or_after_some_element(chosen):
    """A1.7: and a time after a time beyond a frontier is beyond it too."""
    frontier, time, other = chosen
    assert frontier.beyond(time) == any(less_equal(element, time) for element in frontier)
    assert not frontier.beyond(time) or frontier.beyond(join(time, other))


@given(two)
def test_a_time_is_beyond_the_meet_if_it_is_beyond_either(chosen):
    """A1.7: the lower bound of two readers."""
    a, b, time = chosen
    assert a.meet(b).beyond(time) == (a.beyond(time) or b.beyond(time))
    assert a.meet(b).precedes(a) and a.meet(b).precedes(b)


@given(two)
def test_a_time_is_beyond_the_join_if_it_is_beyond_both(chosen):
    """A1.7: the upper bound of two inputs."""
    a, b, time = chosen
    assert a.join(b).beyond(time) == (a.beyond(time) and b.beyond(time))
    assert a.precedes(a.join(b)) and b.precedes(a.join(b))


@given(depths().flatmap(lambda depth: st.tuples(frontiers(depth), frontiers(depth), frontiers(depth))))
def test_frontiers_are_a_lattice_ordered_by_precedes(chosen):
    """A1.7: precedes is a partial order, and meet and join are its bounds."""
    a, b, c = chosen
    assert a.precedes(a)
    assert not (a.precedes(b) and b.precedes(a)) or a == b
    assert not (a.precedes(b) and b.precedes(c)) or a.precedes(c)
    assert (c.precedes(a) and c.precedes(b)) == c.precedes(a.meet(b))
    assert (a.precedes(c) and b.precedes(c)) == a.join(b).precedes(c)
    assert a.join(a.meet(b)) == a == a.meet(a.join(b))


@given(st.data(), st.integers(1, 2))
def test_a_later_frontier_has_fewer_times_beyond_it(data, depth):
    """A1.7: a frontier has advanced if and only if no excluded time is beyond it again."""
    a, b = data.draw(frontiers(depth)), data.draw(frontiers(depth))
    assert a.precedes(b) == all(a.beyond(time) for time in everywhere(depth) if b.beyond(time))


@given(depths().flatmap(advances))
def test_frontiers_only_advance(steps):
    """A1.7: joined with anything, a frontier never moves back."""
    assert all(earlier.precedes(later) for earlier, later in zip(steps, steps[1:], strict=False))


@given(st.data(), depths())
def test_since_is_at_or_before_upper(data, depth):
    upper = data.draw(frontiers(depth))
    since = data.draw(sinces(upper, depth))
    assert since and since.precedes(upper)


@given(depths().flatmap(lambda depth: st.tuples(frontiers(depth), times(depth, 4))))
def test_the_closed_frontier_is_after_all_others(chosen):
    """A1.7: nothing is beyond the empty frontier."""
    frontier, time = chosen
    assert not CLOSED and not CLOSED.beyond(time)
    assert frontier.precedes(CLOSED)
    assert frontier.join(CLOSED) == CLOSED and frontier.meet(CLOSED) == frontier


@given(depths().flatmap(lambda depth: st.lists(times(depth), min_size=1, max_size=6)))
def test_equality_does_not_depend_on_how_frontiers_were_built(chosen):
    one, other = Frontier(chosen), Frontier(reversed(chosen + chosen))
    assert one == other and hash(one) == hash(other) and repr(one) == repr(other)


@given(depths().flatmap(lambda depth: st.tuples(frontiers(depth), times(depth, 4))))
def test_entering_a_loop_starts_at_round_zero_and_leaving_drops_rounds(chosen):
    """A1.7: extend adds a zero coordinate, truncate undoes it."""
    frontier, time = chosen
    inside = frontier.extend(len(time) + 1)
    assert inside.truncate(len(time)) == frontier
    assert all(inside.beyond((*time, round)) == frontier.beyond(time) for round in range(3))


def test_times_of_other_depths_are_refused():
    with pytest.raises(ValueError, match="zip"):
        Frontier([(1, 2)]).beyond((1,))

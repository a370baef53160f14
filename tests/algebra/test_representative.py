"""Both theorems of appendix A of the papers on rep_F, by brute force over all times that distinguish them (A3.15).

The papers write a wedge for the least upper bound (our join) and a vee for the greatest lower bound (our meet).
"""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpg.algebra.frontier import Frontier, representative
from kpg.algebra.order import less_equal
from kpg.testing.model import accumulate
from kpg.testing.strategies import depths, frontiers, rows, times, updates

LARGEST = 3


def readers(frontier, depth):
    """Return all times beyond the frontier on a grid larger than every time drawn: enough to distinguish any two."""
    return [time for time in product(range(LARGEST + 2), repeat=depth) if frontier.beyond(time)]


def alike(frontier, a, b):
    """Return whether two times are indistinguishable as of F: every time beyond F is at or after both or neither."""
    return all(less_equal(a, time) == less_equal(b, time) for time in readers(frontier, len(a)))


def given_frontier_and_times(count):
    return depths().flatmap(
        lambda depth: st.tuples(frontiers(depth, LARGEST, min_size=1), *[times(depth, LARGEST)] * count)
    )


@given(given_frontier_and_times(1))
def test_correctness_no_reader_distinguishes_a_time_from_its_representative(chosen):
    """A3.15, theorem A.1: t and rep_F(t) compare alike with every time beyond F."""
    frontier, time = chosen
    assert alike(frontier, time, representative(frontier, time))


@given(given_frontier_and_times(2))
def test_optimality_indistinguishable_times_have_one_representative(chosen):
    """A3.15, theorem A.2: times have the same representative if and only if they are indistinguishable."""
    frontier, a, b = chosen
    assert alike(frontier, a, b) == (representative(frontier, a) == representative(frontier, b))


@given(given_frontier_and_times(1))
def test_a_representative_is_not_before_its_time_and_represents_itself(chosen):
    """A3.15: compaction only advances times, and compacting twice changes nothing more."""
    frontier, time = chosen
    once = representative(frontier, time)
    assert less_equal(time, once)
    assert representative(frontier, once) == once


@given(given_frontier_and_times(1))
def test_times_beyond_the_frontier_represent_themselves(chosen):
    """A3.15: times that readers distinguish do not change."""
    frontier, time = chosen
    assert not frontier.beyond(time) or representative(frontier, time) == time


@given(
    depths().flatmap(
        lambda depth: st.tuples(
            frontiers(depth, LARGEST, min_size=1), frontiers(depth, LARGEST, min_size=1), times(depth, LARGEST)
        )
    )
)
def test_compacting_in_two_steps_is_compacting_once(chosen):
    """A3.15: a trace compacted to F and later to a G that F precedes equals one compacted to G directly."""
    first, bound, time = chosen
    second = first.join(bound)
    assert representative(second, representative(first, time)) == representative(second, time)


@given(
    depths().flatmap(
        lambda depth: st.tuples(frontiers(depth, LARGEST, min_size=1), updates(rows(1), depth, largest=LARGEST))
    )
)
def test_compacted_updates_accumulate_to_the_same_collections(chosen):
    """A3.15: for every reader beyond F, the collection is unchanged."""
    frontier, stream = chosen
    compacted = [(data, representative(frontier, time), diff) for data, time, diff in stream]
    for reader in readers(frontier, len(frontier.elements[0])):
        assert accumulate(compacted, reader) == accumulate(stream, reader)


def test_representatives_do_not_keep_lexicographic_order():
    """A3.15: (1, 9) sorts before (2, 3), its representative (2, 9) does not; half joins must know."""
    since = Frontier([(2, 0)])
    assert (1, 9) < (2, 3)
    assert representative(since, (1, 9)) > representative(since, (2, 3))


def test_the_closed_frontier_has_no_representatives():
    with pytest.raises(ValueError, match="no reader"):
        representative(Frontier(), (1,))

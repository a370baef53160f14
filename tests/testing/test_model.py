"""The times that must be checked: an operator that skips joins is wrong only at the joins it skips."""

from functools import reduce
from itertools import combinations

import pytest
from hypothesis import given

from kpg.algebra.frontier import Frontier
from kpg.algebra.order import join
from kpg.testing.model import accumulate, assert_adequate, assert_agrees, consolidated, times_to_check
from kpg.testing.strategies import depths, rows, updates


def denotation(collection):
    n = sum(collection.values())
    return {n: 1} if n else {}


def count_at(times):
    """Return a count operator that evaluates only the given times."""

    def operator(updates):
        out = []
        for t in sorted(times(updates)):
            want, have = denotation(accumulate(updates, t)), accumulate(out, t)
            for v in set(want) | set(have):
                if d := want.get(v, 0) - have.get(v, 0):
                    out.append((v, t, d))
        return out

    return operator


UPDATES = [("a", (0, 1), 1), ("b", (1, 0), 1), ("a", (2, 2), -1)]


def test_right_count_is_adequate():
    """The property holds for an operator that evaluates every join."""
    assert_adequate(count_at(times_to_check), denotation, UPDATES)


@given(depths().flatmap(lambda depth: updates(rows(1), depth)))
def test_right_count_is_adequate_on_any_updates(stream):
    """At one, two and three coordinates."""
    assert_adequate(count_at(times_to_check), denotation, stream)


def test_wrong_count_is_caught_only_at_a_join():
    """An output may change where no input did."""
    wrong = count_at(lambda updates: {t for _, t, _ in updates})
    out = wrong(UPDATES)
    for t in {(0, 1), (1, 0)}:  # checking input times alone finds nothing
        assert accumulate(out, t) == denotation(accumulate(UPDATES, t))
    with pytest.raises(AssertionError, match=r"at \(1, 1\)"):
        assert_adequate(wrong, denotation, UPDATES)


def test_pairs_are_not_enough_with_three_coordinates():
    """Nested loops need joins of three times."""
    updates = [("a", (1, 0, 0), 1), ("b", (0, 1, 0), 1), ("c", (0, 0, 1), 1)]

    def pairs(updates):
        return {join(a, b) for _, a, _ in updates for _, b, _ in updates}

    out = count_at(pairs)(updates)
    for t in pairs(updates):
        assert accumulate(out, t) == denotation(accumulate(updates, t))
    with pytest.raises(AssertionError, match=r"at \(1, 1, 1\)"):
        assert_adequate(count_at(pairs), denotation, updates)


@given(depths().flatmap(lambda depth: updates(rows(1), depth, max_size=5)))
def test_times_to_check_are_the_joins_of_all_subsets(stream):
    times = [time for _, time, _ in stream]
    joins = {reduce(join, some) for size in range(1, len(times) + 1) for some in combinations(times, size)}
    assert times_to_check(stream) == joins


def test_the_figure_of_the_paper_accumulates():
    """A2.1: figure 3 of Shared Arrangements, verbatim (except for a name that it abbreviates once)."""
    company = (342, "Company LLC", "USA")
    firma = (563, "Firma GmbH", "Deutschland")
    azienda, renamed = (225, "Azienda SRL", "Italia"), (225, "Company Ltd", "UK")
    stream = [
        (company, (4350,), 1),
        (firma, (4355,), 1),
        (azienda, (4360,), 1),
        (azienda, (6200,), -1),
        (renamed, (6220,), 1),
    ]
    assert accumulate(stream, (4360,)) == {company: 1, firma: 1, azienda: 1}
    assert accumulate(stream, (6230,)) == {company: 1, firma: 1, renamed: 1}


def test_times_before_since_are_not_promised():
    """A compacted output may be wrong at times that no reader can read, and only there."""
    compacted = [("a", (2,), 1)]
    assert_agrees(compacted, lambda collection: collection, [("a", (0,), 1)], since=Frontier([(2,)]))
    with pytest.raises(AssertionError, match=r"at \(0,\)"):
        assert_agrees(compacted, lambda collection: collection, [("a", (0,), 1)])


@given(updates(rows(1), 2))
def test_consolidated_updates_mean_the_same(stream):
    short = consolidated(stream)
    assert len({(data, time) for data, time, _ in short}) == len(short) <= len(stream)
    assert_agrees(short, lambda collection: collection, stream)

"""The applied batches are a set: the order in which they were added does not matter."""

from hypothesis import given
from hypothesis import strategies as st

from kpg.storage.applied_batches import AppliedBatches
from kpg.storage.record import Origin

ORIGINS = st.builds(Origin, st.sampled_from(["a", "b"]), st.integers(-3, 12))


@given(st.lists(ORIGINS))
def test_it_holds_exactly_the_origins_that_were_added(origins):
    applied = AppliedBatches()
    for origin in origins:
        applied.add(origin)
    restored = AppliedBatches(applied.to_json())
    for source in ("a", "b", "c"):
        for batch in range(-5, 15):
            assert (Origin(source, batch) in restored) == (Origin(source, batch) in origins)
        assert restored.latest(source) == max(
            (origin.batch for origin in origins if origin.source == source), default=None
        )


def test_a_writer_that_counts_up_takes_two_numbers():
    applied = AppliedBatches()
    for batch in range(1000):
        applied.add(Origin("w", batch))
    assert applied.to_json() == {"w": [[0, 999]]}


def test_the_writers_that_wrote_last_are_remembered():
    applied = AppliedBatches(max_writers=2)
    for number, source in enumerate(["a", "b", "a", "c"]):
        applied.add(Origin(source, 1))
        applied.add(Origin(source, 2 + number))
    assert Origin("a", 1) in applied and Origin("c", 1) in applied and Origin("b", 1) not in applied
    restored = AppliedBatches(applied.to_json(), max_writers=2)
    restored.add(Origin("d", 1))
    assert list(restored.to_json()) == ["c", "d"]


@given(steps=st.lists(st.tuples(st.booleans(), ORIGINS), max_size=30))
def test_it_holds_the_origins_that_were_added_and_not_discarded(steps):
    applied, model = AppliedBatches(), set()
    for adds, origin in steps:
        (applied.add if adds else applied.discard)(origin)
        (model.add if adds else model.discard)(origin)
    every = [Origin(source, batch) for source in "ab" for batch in range(-4, 14)]
    assert {origin for origin in every if origin in applied} == model
    for pairs in applied.to_json().values():  # no two ranges touch
        assert all(high + 1 < low for (_, high), (low, _) in zip(pairs, pairs[1:], strict=False))

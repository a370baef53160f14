"""Locating keys and correcting short histories: each kernel against its twin."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kpg.algebra.frontier import Frontier
from kpg.algebra.order import Time
from kpg.columns.consolidate import consolidate
from kpg.columns.updates import Ints, Updates, constant
from kpg.kernels.locate import FENCE_SPACING, locate
from kpg.kernels.unmoved import moved
from kpg.kernels.unseen import unseen
from kpg.operators.react import FIRST, PRESENCE, SUMS, React
from kpg.operators.tactic import Outcome, Question
from kpg.testing import kernels_react as naive
from kpg.testing.strategies import depths, frontiers, rows, times
from kpg.trace.batch import Batch
from kpg.trace.description import Description, elements
from kpg.trace.table import FENCED_ROWS, NO_SIGNS, PLACED_ROWS, Signs, describe, places_of, signs_of, table_of


def block_of(rows: list[tuple[int, ...]], lanes: int) -> Ints:
    """Rows as int64[lanes, n]."""
    return np.ascontiguousarray(np.array(rows, np.int64).reshape(len(rows), lanes).T)


blocks_of_rows = st.lists(st.lists(rows(2, 9), max_size=300), max_size=4)


@given(blocks_of_rows, st.sets(rows(2, 9), min_size=1, max_size=40), st.booleans())
def test_keys_are_located_in_every_batch(blocks: list[list[naive.Row]], keys: set[naive.Row], whole: bool) -> None:
    """A3.7: many keys and few, dense and sparse, keys of one lane and of two."""
    lanes = 2 if whole else 1
    asked = sorted({key[:lanes] for key in keys})
    kept = [Updates(block_of(sorted(block), 2), constant((0,)), constant((1,))) for block in blocks]
    ranges = np.empty((2 * len(kept), len(asked)), np.int64)
    table = table_of([describe(updates) for updates in kept])
    total = locate(table, block_of(asked, lanes), ranges)
    wanted = naive.locate([sorted(block) for block in blocks], asked)
    found = [list(zip(ranges[2 * b].tolist(), ranges[2 * b + 1].tolist(), strict=True)) for b in range(len(kept))]
    assert found == wanted
    assert total == sum(end - start for block in wanted for start, end in block)


def test_far_keys_are_found_in_a_large_batch() -> None:
    """A3.7: searches in step, over more rows than a walk would pay for."""
    data = np.arange(0, 3_000_00, 3, dtype=np.int64).reshape(1, -1)
    updates = Updates(data, constant((0,)), constant((1,)))
    keys = np.array([[-5, 0, 2, 3, 150_000, 150_001, 299_997, 299_999]], np.int64)
    fences = Signs(data[0, ::FENCE_SPACING].copy(), 0, -1)
    for signs in (NO_SIGNS, signs_of(updates), fences):
        ranges = np.empty((2, 8), np.int64)
        assert locate(table_of([describe(updates, signs)]), keys, ranges) == 4
        assert ranges[0].tolist() == np.searchsorted(data[0], keys[0], "left").tolist()
        assert ranges[1].tolist() == np.searchsorted(data[0], keys[0], "right").tolist()


def assert_leads_to_its_rows(signs: Signs, data: Ints, asked: Ints) -> None:
    """Keys are found where a plain search finds them."""
    ranges = np.empty((2, asked.shape[1]), np.int64)
    locate(table_of([describe(Updates(data, constant((0,)), constant((1,))), signs)]), asked, ranges)
    assert ranges[0].tolist() == np.searchsorted(data[0], asked[0], "left").tolist()
    assert ranges[1].tolist() == np.searchsorted(data[0], asked[0], "right").tolist()


@given(st.integers(1, 200), st.lists(st.integers(-5, 2000), min_size=1, max_size=40), st.integers(0, 2**32))
def test_fences_and_places_lead_to_the_same_rows(repeats: int, keys: list[int], seed: int) -> None:
    """A3.7: long runs of equal keys, keys before the first sign and after the last."""
    distinct = np.sort(np.random.default_rng(seed).integers(0, 2000, FENCED_ROWS // repeats + 1))
    data = np.repeat(distinct, repeats).reshape(1, -1)
    asked = np.unique(np.array(keys, np.int64)).reshape(1, -1)
    assert_leads_to_its_rows(Signs(data[0, ::FENCE_SPACING].copy(), 0, -1), data, asked)
    places = places_of(data[0])
    assert places is not None and places.shift >= 0
    assert_leads_to_its_rows(places, data, asked)


@given(st.integers(-(2**62), 2**61), st.integers(0, 40), st.integers(0, 2**32), st.booleans())
def test_places_of_wide_keys_lead_to_their_rows(low: int, bits: int, seed: int, extremes: bool) -> None:
    """A3.7: wherever keys begin and however far apart they are; also for keys as far away as int64 goes."""
    random = np.random.default_rng(seed)
    data = low + np.sort(random.integers(0, 2**bits, PLACED_ROWS)).reshape(1, -1)
    places = places_of(data[0])
    assert places is not None
    far = [-(2**63), 2**63 - 1] if extremes else []
    asked = np.unique([*random.choice(data[0], 20), *(random.choice(data[0], 20) + 1), low - 1, *far]).reshape(1, -1)
    assert_leads_to_its_rows(places, data, asked.astype(np.int64))


def test_keys_in_a_few_heaps_get_fences() -> None:
    """A3.7: where most keys share a place, one look would tell little."""
    heaps = np.sort(np.concatenate([np.arange(FENCED_ROWS), [2**50]])).reshape(1, -1)
    assert places_of(heaps[0]) is None
    signs = signs_of(Updates(heaps, constant((0,)), constant((1,))))
    assert signs.shift == -1 and len(signs.at)
    assert_leads_to_its_rows(signs, heaps, np.array([[-1, 0, 77, 65_535, 65_536, 2**50, 2**51]]))


def batch_of(updates: list[naive.Update], lanes: int, depth: int, width: int) -> Batch:
    """Updates of key 0 as a batch."""
    data = block_of([(0, *values) for values, _, _ in updates], 1 + lanes)
    made = Updates(data, block_of([t for _, t, _ in updates], depth), block_of([r for _, _, r in updates], width))
    return Batch(consolidate(made), 1, Description(Frontier.start(depth), Frontier(), Frontier.start(depth)))


@given(st.data(), depths(), st.booleans(), st.booleans())
def test_keys_that_are_not_there_yet_are_told_from_those_that_are(
    data: st.DataObject, depth: int, cut: bool, alike: bool
) -> None:
    """A5.10: fresh, settled and unclear keys, whatever rows the output's batches have of them."""
    count = data.draw(st.integers(1, 6))
    update = st.tuples(st.just(()), times(depth, 2), st.tuples(st.sampled_from([1, 1, -1])))
    found = [data.draw(st.lists(update, max_size=2, unique_by=lambda each: each[1])) for _ in range(count)]
    if alike:
        seeds = [[data.draw(times(depth, 2))]] * count
    else:
        seeds = [sorted(data.draw(st.sets(times(depth, 2), min_size=1, max_size=2))) for _ in range(count)]
    flat = [((key,), time, diff) for key, rows in enumerate(found) for _, time, diff in rows]
    parts = [flat[::2], flat[1::2]] if cut else [flat]
    batches = [keyed(part, depth) for part in parts]
    keys = np.arange(count).reshape(1, -1)
    ranges = np.empty((2 * len(batches), count), np.int64)
    table = table_of([batch.row for batch in batches])
    locate(table, keys, ranges)
    fresh, unclear = np.empty(count, np.int64), np.empty(count, np.int64)
    offsets = np.cumsum([0] + [len(mine) for mine in seeds])
    given_seeds = block_of(seeds[0] if alike else [time for mine in seeds for time in mine], depth)
    upper = data.draw(frontiers(depth))
    n, others = unseen(table, ranges, offsets, given_seeds, elements(upper, depth), fresh, unclear)
    assert (fresh[:n].tolist(), unclear[:others].tolist()) == naive.unseen(seeds, found, upper)


@given(st.data(), depths(), st.booleans())
def test_groups_that_keep_their_least_row_are_told_from_others(data: st.DataObject, depth: int, cut: bool) -> None:
    """A5.10: rows before, at and after the least one come and go, whatever the output's batches have."""
    count, time = data.draw(st.integers(1, 6)), data.draw(times(depth, 2))
    value, diff = st.tuples(st.integers(0, 3)), st.tuples(st.sampled_from([1, 1, -1]))
    row, new = st.tuples(value, times(depth, 2), diff), st.tuples(value, st.just(time), diff)
    found = [data.draw(st.lists(row, max_size=2, unique_by=lambda each: each[:2])) for _ in range(count)]
    news = [
        sorted(data.draw(st.lists(new, min_size=1, max_size=3, unique_by=lambda each: each[0]))) for _ in range(count)
    ]
    flat = [((key, *values), at, change) for key, rows in enumerate(found) for values, at, change in rows]
    batches = [keyed(part, depth, 2) for part in ([flat[::2], flat[1::2]] if cut else [flat])]
    ranges = np.empty((2 * len(batches), count), np.int64)
    table = table_of([batch.row for batch in batches])
    locate(table, np.arange(count).reshape(1, -1), ranges)
    fresh = [((key, *values), at, change) for key, rows in enumerate(news) for values, at, change in rows]
    came = keyed(fresh, depth, 2)
    offsets = np.cumsum([0] + [len(rows) for rows in news])
    chosen = np.empty(count, np.int64)
    n = moved(table, ranges, 1, came.updates.times, offsets, came.updates.data, came.updates.diffs, chosen)
    assert chosen[:n].tolist() == naive.moved(time, news, found)


def keyed(updates: list[naive.Update], depth: int, lanes: int = 1) -> Batch:
    """Updates of keys as a batch."""
    made = Updates(
        block_of([row for row, _, _ in updates], lanes),
        block_of([time for _, time, _ in updates], depth),
        block_of([diff for _, _, diff in updates], 1),
    )
    return Batch(consolidate(made), 1, Description(Frontier.start(depth), Frontier(), Frontier.start(depth)))


@given(st.data(), depths(), st.sampled_from([PRESENCE, SUMS, FIRST]), st.integers(1, 2), st.booleans())
def test_short_histories_are_corrected_as_the_twin_says(
    data: st.DataObject, depth: int, kind: int, at_least: int, cut: bool
) -> None:
    """A5.4 A5.10: corrections and times put off, whatever the histories say."""
    in_values, out_values = (1 if kind == FIRST else 0), (0 if kind == PRESENCE else 1)
    diff = st.tuples(st.sampled_from([1, 1, -1]))

    def history(values: int) -> list[naive.Update]:
        update = st.tuples(st.tuples(*[st.integers(0, 2)] * values), times(depth, 3), diff)
        return data.draw(st.lists(update, max_size=6))

    inputs, outputs = history(in_values), history(out_values)
    seeds: list[Time] = sorted(data.draw(st.sets(times(depth, 3), min_size=1, max_size=3)))
    upper = data.draw(frontiers(depth))
    in_parts = [inputs[: len(inputs) // 2], inputs[len(inputs) // 2 :]] if cut else [inputs]
    batches = tuple(batch_of(part, in_values, depth, 1) for part in in_parts)
    question = Question(
        np.zeros((1, 1), np.int64),
        np.array([0, len(seeds)]),
        block_of(seeds, depth),
        False,
        batches,
        (batch_of(outputs, out_values, depth, 1),),
        upper,
    )
    made = React(kind, at_least, in_values, out_values, 1, Never()).correct(question)
    found = made.corrections
    corrections = [
        (tuple(value), tuple(time), (count,))
        for value, time, count in zip(
            found.data.T.tolist(), found.times.T.tolist(), found.diffs[0].tolist(), strict=True
        )
    ]
    late = sorted(map(tuple, made.late_times.T.tolist()))
    assert (corrections, late) == naive.react(kind, at_least, seeds, inputs, outputs, upper)


def first_seen(
    kind: int, at_least: int, counts: list[int], time: Time, seed: Time, upper: Frontier
) -> tuple[list[tuple[int, ...]], list[Time]]:
    """Corrections (values, time, count) of a key that has no output, whose value i is there counts[i] times; and the
    times put off."""
    values, depth = (1 if kind == FIRST else 0), len(time)
    there = [value for value, count in enumerate(counts) if count]
    diffs = np.array([[counts[value] for value in there]], np.int64)
    data = block_of([(0, value) for value in there], 2)
    updates = Updates(data, constant(time), diffs)
    batch = Batch(updates, 1, Description(Frontier.start(depth), Frontier(), Frontier.start(depth)))
    question = Question(np.zeros((1, 1), np.int64), np.array([0, 1]), constant(seed), True, (batch,), (), upper)
    made = React(kind, at_least, values, values, 1, Never()).correct(question)
    found = made.corrections
    corrections = zip(found.data.T.tolist(), found.times.T.tolist(), found.diffs[0].tolist(), strict=True)
    return [(*value, *when, count) for value, when, count in corrections], list(map(tuple, made.late_times.T.tolist()))


@given(
    st.data(),
    depths(),
    st.sampled_from([PRESENCE, FIRST]),
    st.lists(st.sampled_from([0, 1, 2, -1, -2]), max_size=60),
    st.integers(1, 3),
)
def test_a_group_that_is_seen_for_the_first_time_is_what_the_twin_says(
    data: st.DataObject, depth: int, kind: int, counts: list[int], at_least: int
) -> None:
    """A5.4 A5.10: all its rows of one time, whether or not that is before the seed, or the seed complete."""
    time, seed, upper = data.draw(times(depth, 2)), data.draw(times(depth, 2)), data.draw(frontiers(depth))
    inputs: list[naive.Update] = [
        ((value,) if kind == FIRST else (), time, (count,)) for value, count in enumerate(counts) if count
    ]
    at_least = at_least if kind == PRESENCE else 1
    made, late = naive.react(kind, at_least, [seed], inputs, [], upper)
    corrections = [(*values, *when, *diff) for values, when, diff in made]
    assert first_seen(kind, at_least, counts, time, seed, upper) == (corrections, late)


def test_a_large_group_that_is_seen_for_the_first_time_is_not_read() -> None:
    """A5.4: its least row is the first; how many follow does not matter."""
    assert first_seen(FIRST, 1, [0, 0, 3] + [1] * 10_000, (1, 0), (1, 2), Frontier()) == ([(2, 1, 2, 1)], [])
    assert first_seen(PRESENCE, 5, [1] * 10_000, (1, 0), (1, 2), Frontier()) == ([(1, 2, 1)], [])


class Never:
    """A tactic that must not be needed."""

    def moved(self, news: Updates, keys: Ints, offsets: Ints, outputs: tuple[Batch, ...]) -> Ints | None:
        raise AssertionError("nobody asks it")

    def correct(self, question: Question) -> Outcome:
        raise AssertionError("a short history was called long")

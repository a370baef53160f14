"""Keys are found in batches, whichever way leads to them: each kernel against its twin."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpg.algebra.frontier import Frontier
from kpg.columns.updates import Ints, Updates, constant
from kpg.kernels import locate_keys as ways
from kpg.kernels.batch_addresses import batch_addresses
from kpg.kernels.bitmap_lookup import BITMAP_FLAG, EXACT_BITMAP_SHIFT
from kpg.kernels.locate_keys import BITMAP, INTERVAL, SCAN, SEARCH, SEARCH_LANE, SPARSE, locate_keys
from kpg.kernels.lookup_tables import SPARSE_SPACING, fill_intervals, interval_of
from kpg.testing import kernel_twins as twins
from kpg.testing.kernel_twins import block as block_of
from kpg.testing.strategies import rows
from kpg.trace.batch import Batch
from kpg.trace.batch_table import address, describe, table_of
from kpg.trace.description import Description
from kpg.trace.locate_batches import locate as located
from kpg.trace.lookup_table import (
    FENCED_ROWS,
    LEAST,
    NONE,
    ROWS_A_PLACE,
    WORTH,
    LookupTable,
    fences_of,
    marks_of,
    places_of,
    signposts_of,
)

FAR = (-(1 << 63), (1 << 63) - 1)
spread = st.sampled_from([*FAR, FAR[0] + 1, -9, -1, 0, 1, 2, 3, 40, 1 << 40, (1 << 40) + 1, FAR[1] - 1])
near = st.integers(-3, 30)
values = st.one_of(near, spread)
WHOLE = (ways.binary_search, ways.scan)  # take keys of several lanes as they are
blocks_of_rows = st.lists(st.lists(rows(2, 9), max_size=300), max_size=4)


def updates_of(data: Ints) -> Updates:
    return Updates(np.ascontiguousarray(data, np.int64), constant((0,)), constant((1,)))


def batch_of(data: Ints) -> Batch:
    return Batch(updates_of(data), 1, Description(Frontier.start(1), Frontier(), Frontier.start(1)))


def searched(lane: Ints, keys: Ints) -> list[list[int]]:
    """Where a plain search finds some values in a lane."""
    return [np.searchsorted(lane, keys, side).tolist() for side in ("left", "right")]


@given(blocks_of_rows, st.lists(rows(2, 9), min_size=1, max_size=40), st.integers(0, 2), st.booleans())
def test_keys_are_located_in_every_batch(
    blocks: list[list[twins.Row]], keys: list[twins.Row], lanes: int, ordered: bool
) -> None:
    """A3.7: many keys and few, dense and sparse, in order and not, some repeated, of no lane, one or two."""
    asked = [key[:lanes] for key in keys]
    asked = sorted(asked) if ordered else asked
    kept = [updates_of(block_of(sorted(block), 2)) for block in blocks]
    ranges = np.empty((2 * len(kept), len(asked)), np.int64)
    total = locate_keys(table_of([describe(each) for each in kept]), block_of(asked, lanes), ranges)
    wanted = twins.locate_keys([sorted(block) for block in blocks], asked)
    found = [list(zip(ranges[2 * b].tolist(), ranges[2 * b + 1].tolist(), strict=True)) for b in range(len(kept))]
    assert found == wanted
    assert total == sum(end - start for block in wanted for start, end in block)


def all_ways(data: Ints, keys: Ints, ordered: bool) -> dict[str, tuple[int, Ints]]:
    """What each way finds that can be taken with these keys, whether it would be or not."""
    n, at, first = data.shape[1], address(data), np.ascontiguousarray(keys[0])
    found = {}

    def take(name: str, way, *arguments) -> None:
        ranges = np.empty((2, keys.shape[1]), np.int64)
        total = way(*arguments, *ranges)
        found[name] = (
            (total if len(keys) == 1 or way in WHOLE else ways.search_other_lanes(at, n, keys, *ranges)),
            ranges,
        )

    places = places_of(data[0], crowded=n)
    assert places is not None
    signs = address(places.at), len(places.at), places.base
    take("places", ways.search_intervals, at, *signs, places.shift, first)
    if places.shift == 0:
        take("exact places", ways.search_exact_intervals, *signs, first)
    take("search", ways.binary_search, at, n, keys)
    if ordered:
        take("walk", ways.scan, at, n, keys)
    if len(keys) == 1:
        take("search lane", ways.binary_search_lane, at, n, keys)
        if n > SPARSE_SPACING:
            fences = fences_of(data[0])
            take("fences", ways.search_sparse, at, n, address(fences.at), len(fences.at), keys)
    return found


@given(st.data(), st.integers(1, 2), st.booleans(), st.integers(1, 30))
def test_all_ways_lead_to_the_rows(data: st.DataObject, lanes: int, ordered: bool, repeats: int) -> None:
    """A3.7: values close together, as far apart as int64 goes, all equal, in heaps; keys before all and after all."""
    value = data.draw(st.sampled_from([values, near, spread]))
    held = sorted(data.draw(st.lists(st.tuples(value, st.integers(0, 3)), min_size=1, max_size=12)) * repeats)
    keys = [key[:lanes] for key in data.draw(st.lists(st.tuples(values, st.integers(0, 3)), max_size=40))]
    keys = sorted(keys) if ordered else keys
    (wanted,) = twins.locate_keys([held], keys)
    for name, (total, ranges) in all_ways(block_of(held, 2), block_of(keys, lanes), ordered).items():
        assert list(zip(*ranges.tolist(), strict=True)) == wanted, name
        assert total == sum(end - start for start, end in wanted), name


@pytest.mark.parametrize("repeats", [1, 40])
def test_each_way_is_among_those_that_were_compared(repeats: int) -> None:
    """A3.7: what the test above compares."""
    data = block_of(sorted([(each, 0) for each in range(3)] * repeats), 2)
    keys = np.array([[-5, 0, 2, 9]], np.int64)
    more = set() if repeats == 1 else {"exact places"}
    fenced = set() if repeats == 1 else {"fences"}
    assert set(all_ways(data, keys, True)) == {"search", "places", "walk", "search lane"} | more | fenced
    assert set(all_ways(data, np.vstack([keys, keys]), False)) == {"search", "places"} | more


def test_the_way_depends_on_keys_and_signposts() -> None:
    """A3.7: walks where keys in order are many; signposts where there are any; searches otherwise."""
    none, places, fences = (0, -1), (10, 3), (10, -1)
    assert ways.choose_method(1, 100, True, 400, *places) == ways.choose_method(2, 100, True, 1600, *none) == SCAN
    assert ways.choose_method(1, 100, True, 401, *places) == ways.choose_method(1, 100, False, 400, *places) == INTERVAL
    assert (
        ways.choose_method(2, 1, True, 639, *places) == INTERVAL
        and ways.choose_method(2, 1, True, 640, *places) == SEARCH
    )
    assert ways.choose_method(1, 100, True, 1601, *fences) == ways.choose_method(1, 100, False, 10, *fences) == SPARSE
    assert (
        ways.choose_method(1, 100, True, 1600, *fences) == ways.choose_method(1, 100, False, 10, *none) == SEARCH_LANE
    )
    assert ways.choose_method(2, 100, True, 1601, *fences) == ways.choose_method(2, 100, False, 10, *none) == SEARCH
    assert (
        ways.choose_method(1, 100, True, 400, 10, EXACT_BITMAP_SHIFT)
        == ways.choose_method(1, 1, False, 10**6, 10, BITMAP_FLAG + 3)
        == BITMAP
    )
    assert (
        ways.choose_method(0, 100, True, 10, *places) == SCAN and ways.choose_method(0, 1, True, 100, *places) == SEARCH
    )


@given(st.lists(values, min_size=1, max_size=30), st.integers(0, 64))
def test_places_tell_where_the_rows_of_each_interval_begin(held: list[int], wider: int) -> None:
    """A3.7: one value, all equal, a span beyond 2^63; a value that is not there has the place of its neighbours."""
    lane = np.array(sorted(held), np.int64)
    low, high = int(lane[0]), int(lane[-1])
    shift = min(63, max(0, (high - low).bit_length() - 6) + wider)
    base = low >> shift
    made = np.empty((high >> shift) - base + 2, np.int64)
    told = fill_intervals(lane, base, shift, made)
    assert (made.tolist(), *told) == twins.fill_intervals(lane.tolist(), base, shift, len(made))
    top = base + len(made) - 2
    for value in (*held, *FAR, low - 1 if low > FAR[0] else low):
        at = interval_of(value, base, shift, top)
        assert made[at] <= np.searchsorted(lane, value, "left") <= np.searchsorted(lane, value, "right") <= made[at + 1]


@pytest.mark.parametrize(
    "lane",
    [
        np.arange(LEAST),
        np.zeros(LEAST),
        np.array([7]),
        np.repeat(np.arange(LEAST // 64), 64),
        np.linspace(FAR[0], FAR[1] - 1024, LEAST),
        np.array([*FAR]),
    ],
    ids=["close", "equal", "one", "runs", "wide", "two"],
)
def test_evenly_spread_values_get_few_places(lane: Ints) -> None:
    """A3.7: at most one for so many rows, whatever the span."""
    lane = np.sort(lane.astype(np.int64))
    made = signposts_of(lane, alone=False)
    assert made.shift >= 0 and len(made.at) <= max(2, len(lane) // ROWS_A_PLACE) + 1
    asked = np.unique(np.concatenate([lane[::7], lane[::11] ^ 1, FAR])).reshape(1, -1)
    assert_leads_to_its_rows(made, lane.reshape(1, -1), asked)


def assert_leads_to_its_rows(signposts: LookupTable, data: Ints, asked: Ints) -> None:
    """Keys are found where a plain search finds them, in order and not."""
    table = table_of([describe(updates_of(data), signposts)])
    for keys in (asked, np.ascontiguousarray(asked[:, ::-1])):
        ranges = np.empty((2, keys.shape[1]), np.int64)
        locate_keys(table, keys, ranges)
        assert ranges.tolist() == searched(data[0], keys[0])


@given(st.integers(1, 200), st.lists(st.integers(-5, 2000), min_size=1, max_size=40), st.integers(0, 2**32))
def test_large_batches_have_the_rows_where_signposts_say(repeats: int, keys: list[int], seed: int) -> None:
    """A3.7: long runs of equal keys, keys before the first sign and after the last; more rows than keys to walk for."""
    distinct = np.sort(np.random.default_rng(seed).integers(0, 2000, LEAST // repeats + 1))
    data = np.repeat(distinct, repeats).reshape(1, -1)
    asked = np.unique(np.array(keys, np.int64)).reshape(1, -1)
    for signposts in (NONE, fences_of(data[0]), signposts_of(data[0], alone=False)):
        assert_leads_to_its_rows(signposts, data, asked)
    assert signposts.shift >= 0


def assert_tells_its_rows(signposts: LookupTable, data: Ints, asked: Ints) -> None:
    """Keys that are there are found where a plain search finds them, others nowhere; in order and not."""
    table = table_of([describe(updates_of(data), signposts)])
    for keys in (asked, np.ascontiguousarray(asked[:, ::-1])):
        ranges, wanted = np.empty((2, keys.shape[1]), np.int64), np.array(searched(data[0], keys[0]))
        there = wanted[0] < wanted[1]
        assert locate_keys(table, keys, ranges) == (wanted[1] - wanted[0]).sum()
        assert (ranges[0] < ranges[1]).tolist() == there.tolist()
        assert ranges[:, there].tolist() == wanted[:, there].tolist()


@given(st.integers(*FAR), st.integers(0, 63), st.integers(0, 2**32), st.integers(1, 300), st.integers(1, 3))
def test_marks_tell_which_keys_are_there(low: int, bits: int, seed: int, count: int, repeats: int) -> None:
    """A3.7: wherever keys are, many in a cell and few, once and several times; also as far away as int64 goes."""
    random = np.random.default_rng(seed)
    lane = np.repeat(random.integers(0, 2**bits, count), repeats)
    lane = np.sort(np.minimum(lane, FAR[1] - max(low, 0)) + low)
    near = random.choice(lane, 20)
    asked = np.unique([*near, *(near ^ 1), *(near ^ 64), low, *FAR]).astype(np.int64).reshape(1, -1)
    marks = marks_of(lane)
    if marks is not None:
        assert_tells_its_rows(marks, lane.reshape(1, -1), asked)


def test_keys_alone_in_a_large_batch_are_marked() -> None:
    """A3.7: exactly where each value has a bit, else by cells, which neighbours may share."""
    close = np.arange(0, 3 * LEAST, 3)
    wide = np.unique([*(1000 * close), 7, 5_003_000, 5_003_001, 5_003_003])
    twice = np.sort([*close, *close[:9]])
    for lane, least, most in (
        (close, EXACT_BITMAP_SHIFT, EXACT_BITMAP_SHIFT),
        (twice, BITMAP_FLAG, BITMAP_FLAG),
        (wide, BITMAP_FLAG + 1, EXACT_BITMAP_SHIFT - 1),
    ):
        made = signposts_of(lane, alone=True)
        assert least <= made.shift <= most
        asked = np.unique([*lane[::50], *(lane[::50] + 1), *range(5_002_999, 5_003_005), -9, *FAR])
        assert_tells_its_rows(made, lane.reshape(1, -1), asked.reshape(1, -1))
    batch = batch_of(close.reshape(1, -1))
    assert batch.row_for(LEAST)[-1] == EXACT_BITMAP_SHIFT


def test_keys_in_a_few_heaps_get_fences() -> None:
    """A3.7: where most keys share a place, one look would tell little."""
    heaps = np.concatenate([np.arange(FENCED_ROWS), [2**50]]).reshape(1, -1)
    assert places_of(heaps[0]) is None
    made = signposts_of(heaps[0], alone=True)
    assert made.shift == -1 and len(made.at) == FENCED_ROWS // SPARSE_SPACING + 1
    assert_leads_to_its_rows(made, heaps, np.array([[-1, 0, 77, 65_535, 65_536, 2**50, 2**51]]))
    assert signposts_of(heaps[0, -LEAST:], alone=True) is NONE


@pytest.mark.parametrize("rows", [0, 1, 1000])
def test_a_row_of_a_table_says_where_arrays_begin(rows: int) -> None:
    """A3.7: as NumPy says it."""
    updates = updates_of(np.zeros((2, rows), np.int64))
    blocks = updates.data, updates.times, updates.diffs
    assert batch_addresses(*blocks) == tuple(address(block) for block in blocks)
    places = LookupTable(np.zeros(3, np.int64), -4, 2)
    told = describe(updates, places)
    assert told[1::2][:3] == (rows, 1, 1) and told[::2][:3] == batch_addresses(*blocks)
    assert told[6:] == (1, address(places.at), 3, -4, 2) and describe(updates)[7:9] == (0, 0)


def test_a_batch_that_is_asked_often_has_signposts() -> None:
    """They are made once, when it pays, and count as memory of the batch; a small batch has none."""
    lane = 3 * np.arange(LEAST)
    batch = batch_of(lane.reshape(1, -1))
    few, one = np.zeros((1, LEAST // WORTH - 1), np.int64), np.array([[6]])
    bare = batch.nbytes
    table, _, _ = located([batch], few)
    assert batch.nbytes == bare and table.tolist() == [list(describe(batch.updates))]
    table, ranges, n = located([batch], one)
    made = batch.nbytes - bare
    assert 0 < made <= 8 * (LEAST // ROWS_A_PLACE + 1) and table.tolist() != [list(describe(batch.updates))]
    assert ranges.tolist() == [[2], [3]] and n == 1
    assert located([batch], one)[0].tolist() == table.tolist() and batch.nbytes == bare + made
    small = batch_of(lane[1:].reshape(1, -1))
    located([small], few)
    located([small], few)
    assert small.nbytes == small.updates.nbytes
    keyless = batch_of(lane.reshape(1, -1))
    located([keyless], np.empty((0, LEAST), np.int64))
    assert keyless.nbytes == keyless.updates.nbytes

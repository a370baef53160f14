"""Keys are found in batches, by every method: each kernel against its twin."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpg.algebra.frontier import Frontier
from kpg.columns.updates import Ints, Updates, constant
from kpg.kernels import locate_keys as kernel
from kpg.kernels.array_address import FIELDS
from kpg.kernels.batch_addresses import batch_addresses, write_addresses
from kpg.kernels.bitmap_lookup import BITMAP_FLAG, EXACT_BITMAP_SHIFT
from kpg.kernels.locate_keys import BITMAP, INTERVAL, SCAN, SEARCH, SEARCH_LANE, SPARSE, locate_keys
from kpg.kernels.lookup_tables import SPARSE_SPACING, fill_intervals, interval_of
from kpg.testing import kernel_twins as twins
from kpg.testing.kernel_twins import block as block_of
from kpg.testing.strategies import rows
from kpg.trace.batch import Batch
from kpg.trace.batch_table import address, describe_batch, table_of
from kpg.trace.description import Description
from kpg.trace.locate_batches import locate as located
from kpg.trace.lookup_table import (
    MIN_ROWS,
    MIN_ROWS_PER_INTERVAL,
    MIN_SPARSE_ROWS,
    NO_TABLE,
    ROWS_PER_SEARCHED_KEY,
    LookupTable,
    build_bitmap,
    build_intervals,
    build_lookup_table,
    build_sparse,
)

FAR = (-(1 << 63), (1 << 63) - 1)
spread = st.sampled_from([*FAR, FAR[0] + 1, -9, -1, 0, 1, 2, 3, 40, 1 << 40, (1 << 40) + 1, FAR[1] - 1])
near = st.integers(-3, 30)
values = st.one_of(near, spread)
WHOLE = (kernel.binary_search, kernel.scan)  # these search by all lanes of a key
blocks_of_rows = st.lists(st.lists(rows(2, 9), max_size=300), max_size=4)


def updates_of(data: Ints) -> Updates:
    return Updates(np.ascontiguousarray(data, np.int64), constant((0,)), constant((1,)))


def batch_of(data: Ints) -> Batch:
    return Batch(updates_of(data), 1, Description(Frontier.start(1), Frontier(), Frontier.start(1)))


def searched(lane: Ints, keys: Ints) -> list[list[int]]:
    """Return where a plain search finds some values in a lane."""
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
    total = locate_keys(table_of([describe_batch(updates) for updates in kept]), block_of(asked, lanes), ranges)
    wanted = twins.locate_keys([sorted(block) for block in blocks], asked)
    located = [list(zip(ranges[2 * b].tolist(), ranges[2 * b + 1].tolist(), strict=True)) for b in range(len(kept))]
    assert located == wanted
    assert total == sum(end - start for block in wanted for start, end in block)


def all_methods(data: Ints, keys: Ints, ordered: bool) -> dict[str, tuple[int, Ints]]:
    """Return the result of each method that can be used with these keys, whether or not it would be chosen."""
    n, at, first = data.shape[1], address(data), np.ascontiguousarray(keys[0])
    results = {}

    def run(name: str, method, *arguments) -> None:
        ranges = np.empty((2, keys.shape[1]), np.int64)
        total = method(*arguments, *ranges)
        results[name] = (
            (total if len(keys) == 1 or method in WHOLE else kernel.search_other_lanes(at, n, keys, *ranges)),
            ranges,
        )

    intervals = build_intervals(data[0], max_crowding=n)
    assert intervals is not None
    lookup = address(intervals.array), len(intervals.array), intervals.base
    run("intervals", kernel.search_intervals, at, *lookup, intervals.shift, first)
    if intervals.shift == 0:
        run("exact intervals", kernel.search_exact_intervals, *lookup, first)
    run("search", kernel.binary_search, at, n, keys)
    if ordered:
        run("scan", kernel.scan, at, n, keys)
    if len(keys) == 1:
        run("search lane", kernel.binary_search_lane, at, n, keys)
        if n > SPARSE_SPACING:
            sparse = build_sparse(data[0])
            run("sparse", kernel.search_sparse, at, n, address(sparse.array), len(sparse.array), keys)
    return results


@given(st.data(), st.integers(1, 2), st.booleans(), st.integers(1, 30))
def test_all_methods_find_the_rows(data: st.DataObject, lanes: int, ordered: bool, repeats: int) -> None:
    """A3.7: values close together, as far apart as int64 goes, all equal, clustered; keys before all and after all."""
    value = data.draw(st.sampled_from([values, near, spread]))
    held = sorted(data.draw(st.lists(st.tuples(value, st.integers(0, 3)), min_size=1, max_size=12)) * repeats)
    keys = [key[:lanes] for key in data.draw(st.lists(st.tuples(values, st.integers(0, 3)), max_size=40))]
    keys = sorted(keys) if ordered else keys
    (wanted,) = twins.locate_keys([held], keys)
    for name, (total, ranges) in all_methods(block_of(held, 2), block_of(keys, lanes), ordered).items():
        assert list(zip(*ranges.tolist(), strict=True)) == wanted, name
        assert total == sum(end - start for start, end in wanted), name


@pytest.mark.parametrize("repeats", [1, 40])
def test_each_method_is_among_those_compared(repeats: int) -> None:
    """A3.7: the methods that the test above compares."""
    data = block_of(sorted([(key, 0) for key in range(3)] * repeats), 2)
    keys = np.array([[-5, 0, 2, 9]], np.int64)
    exact = set() if repeats == 1 else {"exact intervals"}
    sparse = set() if repeats == 1 else {"sparse"}
    assert set(all_methods(data, keys, True)) == {"search", "intervals", "scan", "search lane"} | exact | sparse
    assert set(all_methods(data, np.vstack([keys, keys]), False)) == {"search", "intervals"} | exact


def test_the_method_depends_on_keys_and_lookup_table() -> None:
    """A3.7: scans for many sorted keys; lookup tables where the batch has one; otherwise searches."""
    none, interval, sparse = (0, -1), (10, 3), (10, -1)
    choose = kernel.choose_method
    assert choose(1, 100, True, 400, *interval) == choose(2, 100, True, 1600, *none) == SCAN
    assert choose(1, 100, True, 401, *interval) == choose(1, 100, False, 400, *interval) == INTERVAL
    assert choose(2, 1, True, 639, *interval) == INTERVAL and choose(2, 1, True, 640, *interval) == SEARCH
    assert choose(1, 100, True, 1601, *sparse) == choose(1, 100, False, 10, *sparse) == SPARSE
    assert choose(1, 100, True, 1600, *sparse) == choose(1, 100, False, 10, *none) == SEARCH_LANE
    assert choose(2, 100, True, 1601, *sparse) == choose(2, 100, False, 10, *none) == SEARCH
    bitmap = (10, BITMAP_FLAG + 3)
    assert choose(1, 100, True, 400, 10, EXACT_BITMAP_SHIFT) == choose(1, 1, False, 10**6, *bitmap) == BITMAP
    assert choose(0, 100, True, 10, *interval) == SCAN and choose(0, 1, True, 100, *interval) == SEARCH


@given(st.lists(values, min_size=1, max_size=30), st.integers(0, 64))
def test_interval_tables_hold_the_first_row_of_each_interval(held: list[int], wider: int) -> None:
    """A3.7: one value, all equal, a span beyond 2^63; a missing value has the interval of its neighbours."""
    lane = np.array(sorted(held), np.int64)
    low, high = int(lane[0]), int(lane[-1])
    shift = min(63, max(0, (high - low).bit_length() - 6) + wider)
    base = low >> shift
    starts = np.empty((high >> shift) - base + 2, np.int64)
    counts = fill_intervals(lane, base, shift, starts)
    assert (starts.tolist(), *counts) == twins.fill_intervals(lane.tolist(), base, shift, len(starts))
    top = base + len(starts) - 2
    for value in (*held, *FAR, low - 1 if low > FAR[0] else low):
        at = interval_of(value, base, shift, top)
        assert (
            starts[at]
            <= np.searchsorted(lane, value, "left")
            <= np.searchsorted(lane, value, "right")
            <= starts[at + 1]
        )


@pytest.mark.parametrize(
    "lane",
    [
        np.arange(MIN_ROWS),
        np.zeros(MIN_ROWS),
        np.array([7]),
        np.repeat(np.arange(MIN_ROWS // 64), 64),
        np.linspace(FAR[0], FAR[1] - 1024, MIN_ROWS),
        np.array([*FAR]),
    ],
    ids=["close", "equal", "one", "runs", "wide", "two"],
)
def test_evenly_spread_values_get_few_intervals(lane: Ints) -> None:
    """A3.7: at most one interval for MIN_ROWS_PER_INTERVAL rows, for any span."""
    lane = np.sort(lane.astype(np.int64))
    table = build_lookup_table(lane, is_whole_row=False)
    assert table.shift >= 0 and len(table.array) <= max(2, len(lane) // MIN_ROWS_PER_INTERVAL) + 1
    asked = np.unique(np.concatenate([lane[::7], lane[::11] ^ 1, FAR])).reshape(1, -1)
    assert_finds_all_keys(table, lane.reshape(1, -1), asked)


def assert_finds_all_keys(lookup: LookupTable, data: Ints, asked: Ints) -> None:
    """Assert that keys are found where a plain search finds them, sorted and not."""
    table = table_of([describe_batch(updates_of(data), lookup)])
    for keys in (asked, np.ascontiguousarray(asked[:, ::-1])):
        ranges = np.empty((2, keys.shape[1]), np.int64)
        locate_keys(table, keys, ranges)
        assert ranges.tolist() == searched(data[0], keys[0])


@given(st.integers(1, 200), st.lists(st.integers(-5, 2000), min_size=1, max_size=40), st.integers(0, 2**32))
def test_large_batches_are_searched_with_every_lookup_table(repeats: int, keys: list[int], seed: int) -> None:
    """A3.7: long runs of equal keys, keys before the first entry and after the last; too many rows for a scan."""
    distinct = np.sort(np.random.default_rng(seed).integers(0, 2000, MIN_ROWS // repeats + 1))
    data = np.repeat(distinct, repeats).reshape(1, -1)
    asked = np.unique(np.array(keys, np.int64)).reshape(1, -1)
    for lookup in (NO_TABLE, build_sparse(data[0]), build_lookup_table(data[0], is_whole_row=False)):
        assert_finds_all_keys(lookup, data, asked)
    assert lookup.shift >= 0


def assert_finds_present_keys(lookup: LookupTable, data: Ints, asked: Ints) -> None:
    """Assert that present keys are found where a plain search finds them, others nowhere; sorted and not."""
    table = table_of([describe_batch(updates_of(data), lookup)])
    for keys in (asked, np.ascontiguousarray(asked[:, ::-1])):
        ranges, wanted = np.empty((2, keys.shape[1]), np.int64), np.array(searched(data[0], keys[0]))
        present = wanted[0] < wanted[1]
        assert locate_keys(table, keys, ranges) == (wanted[1] - wanted[0]).sum()
        assert (ranges[0] < ranges[1]).tolist() == present.tolist()
        assert ranges[:, present].tolist() == wanted[:, present].tolist()


@given(st.integers(*FAR), st.integers(0, 63), st.integers(0, 2**32), st.integers(1, 300), st.integers(1, 3))
def test_bitmaps_find_exactly_the_keys_of_a_batch(low: int, bits: int, seed: int, count: int, repeats: int) -> None:
    """A3.7: keys anywhere, many in a cell and few, once and several times, as far apart as int64 goes."""
    random = np.random.default_rng(seed)
    lane = np.repeat(random.integers(0, 2**bits, count), repeats)
    lane = np.sort(np.minimum(lane, FAR[1] - max(low, 0)) + low)
    near = random.choice(lane, 20)
    asked = np.unique([*near, *(near ^ 1), *(near ^ 64), low, *FAR]).astype(np.int64).reshape(1, -1)
    bitmap = build_bitmap(lane)
    if bitmap is not None:
        assert_finds_present_keys(bitmap, lane.reshape(1, -1), asked)


def test_single_lane_batches_get_a_bitmap() -> None:
    """A3.7: an exact bitmap if each value has a bit; otherwise cells that neighbouring values may share."""
    close = np.arange(0, 3 * MIN_ROWS, 3)
    wide = np.unique([*(1000 * close), 7, 5_003_000, 5_003_001, 5_003_003])
    twice = np.sort([*close, *close[:9]])
    for lane, least, most in (
        (close, EXACT_BITMAP_SHIFT, EXACT_BITMAP_SHIFT),
        (twice, BITMAP_FLAG, BITMAP_FLAG),
        (wide, BITMAP_FLAG + 1, EXACT_BITMAP_SHIFT - 1),
    ):
        table = build_lookup_table(lane, is_whole_row=True)
        assert least <= table.shift <= most
        asked = np.unique([*lane[::50], *(lane[::50] + 1), *range(5_002_999, 5_003_005), -9, *FAR])
        assert_finds_present_keys(table, lane.reshape(1, -1), asked.reshape(1, -1))
    batch = batch_of(close.reshape(1, -1))
    assert batch.row_for_search(MIN_ROWS)[-1] == EXACT_BITMAP_SHIFT


def test_clustered_keys_get_a_sparse_table() -> None:
    """A3.7: if most keys share an interval, an interval table would not narrow the search."""
    clustered = np.concatenate([np.arange(MIN_SPARSE_ROWS), [2**50]]).reshape(1, -1)
    assert build_intervals(clustered[0]) is None
    table = build_lookup_table(clustered[0], is_whole_row=True)
    assert table.shift == -1 and len(table.array) == MIN_SPARSE_ROWS // SPARSE_SPACING + 1
    assert_finds_all_keys(table, clustered, np.array([[-1, 0, 77, 65_535, 65_536, 2**50, 2**51]]))
    assert build_lookup_table(clustered[0, -MIN_ROWS:], is_whole_row=True) is NO_TABLE


@pytest.mark.parametrize("rows", [0, 1, 1000])
def test_a_batch_row_holds_the_addresses_of_its_arrays(rows: int) -> None:
    """A3.7: the addresses that NumPy reports."""
    updates = updates_of(np.zeros((2, rows), np.int64))
    blocks = updates.data, updates.times, updates.diffs
    assert batch_addresses(*blocks) == tuple(address(block) for block in blocks)
    lookup = LookupTable(np.zeros(3, np.int64), -4, 2)
    described = describe_batch(updates, lookup)
    assert described[1::2][:3] == (rows, 1, 1) and described[::2][:3] == batch_addresses(*blocks)
    assert described[6:] == (1, address(lookup.array), 3, -4, 2) and describe_batch(updates)[7:9] == (0, 0)
    table = np.full((3, FIELDS), -7, np.int64)
    write_addresses(table, 1, *blocks)
    assert tuple(table[1].tolist()) == describe_batch(updates) and (table[::2] == -7).all()


def test_a_batch_that_is_searched_often_gets_a_lookup_table() -> None:
    """The table is built once, when it pays, and counts as memory of the batch; a small batch has none."""
    lane = 3 * np.arange(MIN_ROWS)
    batch = batch_of(lane.reshape(1, -1))
    few, one = np.zeros((1, MIN_ROWS // ROWS_PER_SEARCHED_KEY - 1), np.int64), np.array([[6]])
    bare = batch.nbytes
    table, _, _ = located([batch], few)
    assert batch.nbytes == bare and table.tolist() == [list(describe_batch(batch.updates))]
    table, ranges, n = located([batch], one)
    table_bytes = batch.nbytes - bare
    assert 0 < table_bytes <= 8 * (MIN_ROWS // MIN_ROWS_PER_INTERVAL + 1)
    assert table.tolist() != [list(describe_batch(batch.updates))]
    assert ranges.tolist() == [[2], [3]] and n == 1
    assert located([batch], one)[0].tolist() == table.tolist() and batch.nbytes == bare + table_bytes
    small = batch_of(lane[1:].reshape(1, -1))
    located([small], few)
    located([small], few)
    assert small.nbytes == small.updates.nbytes
    keyless = batch_of(lane.reshape(1, -1))
    located([keyless], np.empty((0, MIN_ROWS), np.int64))
    assert keyless.nbytes == keyless.updates.nbytes

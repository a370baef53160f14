"""Every method of consolidation gives the same result: each (data, time) once, sorted, without zeros."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpg.columns import consolidation as ways
from kpg.columns import output_buffer, word_order
from kpg.columns.consolidation import consolidate, consolidate_all
from kpg.columns.updates import Updates, constant, no_updates
from kpg.kernels.consolidate_rows import (
    add_to_table,
    close_lane_gaps,
    consolidate_few,
    count_distinct,
    count_signed_words,
    count_words,
    is_uniform,
    read_table,
    sum_positions,
    sum_words,
    unpack_words,
)
from kpg.testing import kernel_twins as twins
from kpg.testing.strategies import depths, times

# Lanes of every kind: narrow, wide with few values (ties), wide, and as far apart as int64 goes.
LANES = [
    st.integers(0, 2),
    st.integers(-3, 300),
    st.sampled_from([-(2**62), 7, 2**61, 2**61 + 1]),
    st.sampled_from([-(2**63), -1, 0, 2**63 - 1]),
    st.integers(-(2**63), 2**63 - 1),
]


@st.composite
def some_updates(draw: st.DrawFn) -> list[twins.Update]:
    lanes, depth, width = draw(st.integers(0, 3)), draw(depths()), draw(st.sampled_from([1, 1, 2]))
    kinds = [draw(st.sampled_from(LANES)) for _ in range(lanes)]
    diff = st.tuples(
        *[draw(st.sampled_from([st.just(1), st.sampled_from([1, -1]), st.integers(-(2**40), 2**40)]))] * width
    )
    time = draw(st.sampled_from([times(depth, 0), times(depth)]))
    size = draw(st.sampled_from([0, 3, 30, 90]))
    return draw(st.lists(st.tuples(st.tuples(*kinds), time, diff), min_size=min(size, 1), max_size=size))


def in_columns(rows: list[twins.Update], spread: bool = False) -> Updates:
    return twins.updates(rows, len(rows[0][0]), len(rows[0][1]), len(rows[0][2]), spread)


def assert_plain(updates: Updates) -> None:
    """Assert that arrays have the one type that kernels take, and are constant where possible."""
    n = len(updates)
    for part in (updates.data, updates.times, updates.diffs):
        assert part.dtype == np.int64 and part.flags.c_contiguous and part.flags.writeable
    for part in (updates.times, updates.diffs):
        assert part.shape[1] == (1 if n <= 1 or len(set(twins.columns(part))) == 1 else n)


@given(some_updates(), st.booleans())
def test_consolidate_matches_twin(rows, spread):
    if rows:
        got = consolidate(in_columns(rows, spread))
        assert twins.rows(got) == twins.consolidate(rows)
        assert_plain(got)


@given(
    some_updates(),
    st.lists(st.tuples(st.integers(0, 90), st.booleans()), max_size=3),
    st.sampled_from([0, 128]),
    st.sampled_from(["any", "sorted", "distinct"]),
)
def test_parts_are_consolidated_as_if_they_were_one(rows, cuts, few, order):
    """Each part has constant or varying times and diffs; some have no rows. Rows may come in their order."""
    if order != "any":
        rows = sorted(rows)
    if order == "distinct":
        rows = [row for position, row in enumerate(rows) if position == 0 or row[0] != rows[position - 1][0]]
    if rows:
        nothing = in_columns(rows[:1])
        ends = [0, *sorted(min(at, len(rows)) for at, _ in cuts), len(rows)]
        kinds = [True, *[spread for _, spread in cuts]]
        parts = [no_updates(nothing.lanes, nothing.depth, nothing.width)]
        for i, spread in enumerate(kinds):
            if ends[i] < ends[i + 1]:
                parts.append(in_columns(rows[ends[i] : ends[i + 1]], spread))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ways, "INSERTION_SORT_ROWS", few)
            got = consolidate_all(parts)
        assert twins.rows(got) == twins.consolidate(rows)
        assert_plain(got)


def test_parts_are_released_before_they_are_sorted(monkeypatch):
    """Otherwise a large load would be in memory twice. Covers each method that packs parts one by one."""
    monkeypatch.setattr(ways, "INSERTION_SORT_ROWS", 0)
    for diffs, bits in (([[1]], 22), ([[1, -1, 3, 4]], 22), ([[1]], 0), ([[1, -1, 3, 4]], 0)):
        monkeypatch.setattr(ways, "TABLE_BITS", bits)
        rows = np.array([[7, 5, 6, 5]], np.int64)
        parts = [Updates(rows + far, constant((0,)), np.array(diffs, np.int64)) for far in (0, 0, 2)]
        got = consolidate_all(parts)
        assert not parts and got.data.tolist() == [[5, 6, 7, 8, 9]]


@given(some_updates(), st.booleans(), st.sampled_from([0, 5]), st.sampled_from([0, 3]))
def test_consolidate_matches_twin_when_every_method_starts_early(rows, spread, few, table_bits):
    """With tiny limits, so that short inputs take the methods of long ones."""
    if rows:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ways, "INSERTION_SORT_ROWS", few)
            patch.setattr(ways, "TABLE_BITS", table_bits)
            patch.setattr(ways, "WORD_BITS", 20)
            patch.setattr(output_buffer, "COPIED_COLUMNS", 4)
            got = consolidate(in_columns(rows, spread))
        assert twins.rows(got) == twins.consolidate(rows)
        assert_plain(got)


@given(
    st.lists(st.tuples(st.tuples(st.integers(-2, 9), st.integers(0, 3)), times(1), st.integers(-3, 3)), min_size=1),
    st.booleans(),
)
def test_small_diffs_become_repeated_signed_words(rows, spread):
    """Each word occurs as often as its diff. The test calls the method by name, so that it is surely taken."""
    updates = in_columns([(data, time, (diff,)) for data, time, diff in rows], spread)
    total = count_signed_words(twins.block([(diff,) for _, _, diff in rows], 1)[0])
    weight = sum(abs(diff) for _, _, diff in rows)
    assert total == (weight if weight <= 2 * len(rows) else -1)
    if total > 0 and updates.diffs.shape[1] == len(rows):
        row = ways.Fields([ways._row_blocks(updates)])
        got = ways._consolidate_signed(updates, len(rows), row, total)
        assert twins.rows(got) == twins.consolidate([(data, time, (diff,)) for data, time, diff in rows])
        assert_plain(got)


def test_rows_of_62_bits_are_summed_as_signed_words(monkeypatch):
    """The result of a join of changes: too wide for a word that also holds a diff of two bits."""
    generator = np.random.default_rng(1)
    data = np.stack([generator.integers(0, 2**31, 400) for _ in range(2)]) | 1 << 30
    data[:, :2] = [[0, 2**31 - 1], [0, 2**31 - 1]]
    data = np.concatenate([data, data[:, ::3]], axis=1)
    updates = Updates(data, constant((0,)), generator.choice([-1, 1], (1, data.shape[1])))
    monkeypatch.setattr(ways, "_consolidate_by_position", None)
    assert twins.rows(consolidate(updates)) == twins.consolidate(twins.rows(updates))


def test_no_updates_consolidate_to_no_updates():
    assert len(consolidate(no_updates(2, 1))) == 0


def test_constant_time_is_kept_and_never_spread():
    rows = [((i % 7,), (4,), (1,)) for i in range(500)]
    assert consolidate(in_columns(rows)).times.tolist() == [[4]]


@pytest.mark.parametrize("n", [10, 1000])
def test_a_constant_diff_of_zero_leaves_nothing(n):
    data = np.arange(n, dtype=np.int64).reshape(1, n)
    assert len(consolidate(Updates(data, constant((0,)), constant((0,))))) == 0


def test_keys_as_far_apart_as_int64_goes():
    """Their difference does not fit 64 bits."""
    data = np.array([[2**63 - 1, -(2**63), 0] * 100], np.int64)
    got = consolidate(Updates(data, constant((0,)), constant((1,))))
    assert twins.rows(got) == [((x,), (0,), (100,)) for x in (-(2**63), 0, 2**63 - 1)]


def test_many_ties_in_the_leading_bits_are_resolved_by_the_next():
    """The first lane is wide but has few values, so that one word holds few bits of the second."""
    generator = np.random.default_rng(1)
    data = np.stack([generator.choice([0, 2**61, -(2**61)], 5000), generator.integers(0, 2**50, 5000)])
    diffs = generator.choice([-1, 1], (1, 5000))
    got = consolidate(Updates(data, constant((0,)), diffs))
    assert twins.rows(got) == twins.consolidate(twins.rows(Updates(data, constant((0,)), diffs)))


# The kernels, one by one.


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), max_size=5), st.integers(0, 5))
def test_is_uniform_says_whether_columns_are_equal(columns, n):
    n = min(n, len(columns))
    if n:
        assert is_uniform(twins.block(columns, 2), n) == (1 if len(set(columns[:n])) == 1 else 0)


@given(some_updates(), st.booleans())
def test_sums_of_positions_match_twin(rows, exact):
    if not rows:
        return
    updates = in_columns(rows)
    order = sorted(range(len(rows)), key=lambda i: rows[i][:2])
    ranks = twins.rank_words([row[:2] for row in rows])  # type: ignore[arg-type,misc]
    bits = len(rows).bit_length()
    words = np.array([(ranks[i] << bits if exact else 0) | i for i in order], np.int64)
    sums = np.empty((updates.width, len(rows)), np.int64)
    mask = (1 << bits) - 1
    kept = sum_positions(updates.data, updates.times, updates.diffs, words, mask, 1 if exact else 0, sums)
    order = [word & mask for word in words[:kept].tolist()]
    got = [(*rows[i][:2], diff) for i, diff in zip(order, twins.columns(sums), strict=False)]
    assert got == twins.consolidate(rows)


@given(some_updates())
def test_sums_of_few_rows_match_twin(rows):
    if not rows:
        return
    updates = in_columns(rows)
    n = len(rows)
    data, diffs = np.empty_like(updates.data), np.empty((updates.width, n), np.int64)
    times_out = np.empty((updates.depth, n), np.int64)
    kept = consolidate_few(updates.data, updates.times, updates.diffs, np.empty(n, np.int64), data, times_out, diffs)
    want = twins.consolidate(rows)
    assert twins.columns(data[:, :kept]) == [row[0] for row in want]
    assert twins.columns(diffs[:, :kept]) == [row[2] for row in want]
    if updates.times.shape[1] > 1:
        assert twins.columns(times_out[:, :kept]) == [row[1] for row in want]


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from([-1, 1])), min_size=1, max_size=20))
def test_sums_of_words_match_twin(pairs):
    """The two lowest bits hold diffs; the table and the sorted words agree."""
    want = [(data[0], diff[0]) for data, _, diff in twins.consolidate([((k,), (), (d,)) for k, d in pairs])]
    words = np.sort(np.array([(k << 2) | (d + 1) for k, d in pairs], np.int64))
    assert count_distinct(words, 2) == len({k for k, _ in pairs})
    sums = np.empty((1, len(pairs)), np.int64)
    kept = sum_words(words, 2, np.array([-1]), np.array([3]), np.array([0]), sums)
    keys = np.empty((1, kept), np.int64)
    unpack_words(words, kept, np.array([0]), np.array([7]), np.array([2]), keys)
    assert list(zip(keys[0].tolist(), sums[0, :kept].tolist(), strict=True)) == want

    table, entries, sums = np.zeros(8, np.int64), np.empty(8, np.int64), np.empty((1, 8), np.int64)
    keys, diffs = np.array([[k for k, _ in pairs]], np.int64), np.array([[d for _, d in pairs]], np.int64)
    add_to_table(keys, np.zeros((1, 1), np.int64), np.array([0]), np.array([0]), diffs, table)
    kept = read_table(table, entries, sums)
    assert list(zip(entries[:kept].tolist(), sums[0, :kept].tolist(), strict=True)) == want


@given(st.lists(st.integers(0, 4), min_size=1, max_size=20), st.sampled_from([(3,), (-1,), (2, -5)]))
def test_counts_of_words_match_twin(keys, diff):
    words = np.sort(np.array(keys, np.int64))
    sums = np.empty((len(diff), len(set(keys))), np.int64)
    kept = count_words(words, np.array(diff, np.int64), sums)
    got = [((word,), (), d) for word, d in zip(words[:kept].tolist(), twins.columns(sums), strict=True)]
    assert got == twins.consolidate([((key,), (), diff) for key in keys])


@pytest.mark.parametrize(("lanes", "capacity", "kept"), [(1, 5, 3), (3, 5, 3), (3, 5, 0), (2, 4, 4)])
def test_gaps_between_lanes_are_closed(lanes, capacity, kept):
    flat = np.arange(lanes * capacity, dtype=np.int64)
    want = flat.reshape(lanes, capacity)[:, :kept].copy()
    close_lane_gaps(flat, lanes, capacity, kept)
    assert (flat[: lanes * kept].reshape(lanes, kept) == want).all()


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2)), min_size=2, max_size=60),
    st.integers(0, 5),
    st.booleans(),
)
def test_rows_in_the_order_of_time_are_sorted_by_their_other_lanes(pairs, step, in_order):
    """A stable sort by the data, whether times repeat or not; the usual sort if they are not in order."""
    moments = [position // (step + 1) if in_order else -position for position in range(len(pairs))]
    rows = [(pair, (moment,), (3,)) for pair, moment in zip(pairs, moments, strict=True)]
    updates = Updates(
        twins.block([row[0] for row in rows], 2), twins.block([row[1] for row in rows], 1), constant((3,))
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ways, "MIN_ORDERED_ROWS", 2)
        patch.setattr(ways, "INSERTION_SORT_ROWS", 0)
        patch.setattr(ways, "TABLE_BITS", 0)
        patch.setattr(word_order, "MIN_RADIX_WORDS", 1)
        patch.setattr(word_order, "_is_radix_faster", lambda n, bits: True)
        assert twins.sorted_rows(consolidate(updates)) == twins.consolidate(rows)

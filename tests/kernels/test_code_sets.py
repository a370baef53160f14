"""Sets of codes, as bitmaps and as hash tables, equal their twins."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpg.kernels.code_sets import (
    FAR_SLOTS,
    decode_column,
    expand_ranges,
    insert_slots,
    move_columns,
    read_ranges,
    table_members,
)
from kpg.seminaive import code_set as module
from kpg.seminaive.code_set import CodeLevels, CodeSet
from kpg.testing import kernel_twins as twins

codes = st.lists(st.integers(0, 255) | st.integers(0, 3), max_size=60)
ranges = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)).map(sorted).map(tuple), max_size=40)


def ints(values):
    return np.array(values, np.int64)


@pytest.mark.parametrize(("width", "slots"), [(8, None), (40, None), (40, FAR_SLOTS)])
@settings(max_examples=40)
@given(
    first=codes,
    second=codes,
    bounds=ranges,
    right=st.lists(st.integers(0, 99), min_size=9, max_size=9),
    part=st.sampled_from([64, 100, module.PART_CODES]),
)
def test_members_are_inserted_once(width, slots, first, second, bounds, right, part):
    """Bitmaps, and hash tables: small ones, and ones whose slots are requested before they are read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PART_CODES", part)
        members_are_inserted_once(code_set_of(width, slots), first, second, bounds, right)


def code_set_of(width, slots):
    """Return an empty set; with `slots`, a hash table of that size."""
    code_set = CodeSet(width)
    if slots is not None:
        code_set._table = np.full(slots, -1, np.int64)
    return code_set


def members_are_inserted_once(code_set, first, second, bounds, right):
    expected = set[int]()
    assert code_set.insert(ints(first)).tolist() == twins.insert_codes(first, expected)
    left = list(range(len(bounds)))
    low, high = ints([low for low, _ in bounds]), ints([high for _, high in bounds])
    new = [part.tolist() for part in code_set.extend(ints(left), low, high, ints(right))]
    assert sum(new, []) == twins.insert_sums(left, bounds, right, expected)
    assert code_set.insert(ints(second)).tolist() == twins.insert_codes(second, expected)
    assert sum((part.tolist() for part in code_set.runs()), []) == sorted(expected)
    assert len(code_set) == len(expected)


@pytest.mark.parametrize("large_slots", [1, 1 << 26])
@pytest.mark.parametrize("width", [16, 40])
def test_sets_grow_past_their_first_size_and_come_out_in_parts(width, large_slots, monkeypatch):
    monkeypatch.setattr(module, "LARGE_SLOTS", large_slots)
    monkeypatch.setattr(module, "PART_CODES", 128)
    code_set = CodeSet(width)
    everything = np.random.default_rng(1).permutation(30_000)
    for at in range(0, 30_000, 7_000):
        assert len(code_set.insert(everything[at : at + 7_000])) == len(everything[at : at + 7_000])
    parts = list(code_set.runs())
    assert np.concatenate(parts).tolist() == list(range(30_000)) and max(map(len, parts)) <= 128
    zero = np.zeros(300, np.int64)
    new = list(code_set.extend(np.arange(29_900, 30_200), zero, zero + 1, zero))
    assert np.concatenate(new).tolist() == list(range(30_000, 30_200))


@pytest.mark.parametrize("slots", [None, FAR_SLOTS])
@settings(max_examples=40)
@given(members=codes, more=codes)
def test_slots_that_are_not_free_are_inserted(slots, members, more):
    expected = set(more)
    table = code_set_of(40, slots)
    table.insert(ints(more))
    insert_slots(ints([*members, -1, -1]), table._table, table._mask)
    twins.insert_slots([*members, -1, -1], expected)
    assert np.sort(table._table[table._table >= 0]).tolist() == sorted(expected)


@settings(max_examples=30)
@given(parts=st.lists(codes, max_size=5))
def test_packed_sets_equal_their_twins(parts):
    """Large hash tables are filled further than small ones, and are lists of codes while nothing is inserted."""
    was, module.LARGE_SLOTS = module.LARGE_SLOTS, 1
    try:
        code_set, expected = CodeSet(40), set[int]()
        for part in parts:
            assert code_set.insert(ints(part)).tolist() == twins.insert_codes(part, expected)
            code_set.pack()
            assert sum((run.tolist() for run in code_set.runs()), []) == sorted(expected)
            assert len(code_set) == len(expected)
    finally:
        module.LARGE_SLOTS = was


@given(slots=st.lists(st.integers(-1, 5), max_size=40))
def test_members_of_a_table_are_listed(slots):
    out = np.full(len(slots) + 1, 99)
    assert out[: table_members(ints(slots), out)].tolist() == twins.table_members(slots)


@given(keys=st.lists(st.integers(0, 8), max_size=12), starts=st.lists(st.integers(0, 99), min_size=10, max_size=10))
def test_ranges_start_and_end_where_keys_do(keys, starts):
    low, high = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
    read_ranges(ints(keys), ints(starts), low, high)
    assert list(zip(low.tolist(), high.tolist(), strict=True)) == twins.read_ranges(keys, starts)


@given(bounds=ranges)
def test_ranges_are_expanded(bounds):
    expected = twins.expand_ranges(bounds)
    lefts, rights = np.empty(len(expected), np.int64), np.empty(len(expected), np.int64)
    expand_ranges(ints([low for low, _ in bounds]), ints([high for _, high in bounds]), lefts, rights)
    assert list(zip(lefts.tolist(), rights.tolist(), strict=True)) == expected


@given(values=st.lists(st.integers(0, 2**30 - 1), max_size=9), swapped=st.booleans())
def test_columns_are_moved_and_decoded(values, swapped):
    pairs = [(0, 10), (20, 0)] if swapped else [(10, 0)]
    out = np.empty(len(values), np.int64)
    move_columns(ints(values), ints([s for s, _ in pairs]), ints([t for _, t in pairs]), ints([1023] * len(pairs)), out)
    assert out.tolist() == [twins.move_columns(value, pairs, 10) for value in values]
    decode_column(ints(values), 10, 1023, np.arange(1024) * 7, out)
    assert out.tolist() == [((value >> 10) & 1023) * 7 for value in values]


@pytest.mark.parametrize(("width", "slots"), [(8, None), (40, None), (40, FAR_SLOTS)])
@settings(max_examples=40)
@given(steps=st.lists(st.tuples(codes, st.integers(-1, 5)), max_size=6))
def test_levels_are_those_written_last(width, slots, steps):
    code_levels, expected = CodeLevels(width), {}
    if slots is not None:
        code_levels._table, code_levels._levels = np.full(slots, -1, np.int64), np.full(slots, -1, np.int64)
    for given_codes, level in steps:
        code_levels.put(ints(given_codes), level)
        expected |= dict.fromkeys(given_codes, level)
    assert code_levels.get(np.arange(256)).tolist() == [expected.get(code, -1) for code in range(256)]
    kept, levels = code_levels.items()
    assert dict(zip(kept.tolist(), levels.tolist(), strict=True)) == {c: n for c, n in expected.items() if n >= 0}


def test_level_tables_grow_and_drop_codes_without_a_level():
    levels = CodeLevels(40)
    for at in range(0, 9_000, 300):
        levels.put(np.arange(at, at + 300) * 7, at)
        levels.put(np.arange(at, at + 299) * 7, -1)
    assert levels.items()[0].shape == (30,)
    assert levels.nbytes < 9_000 * 16

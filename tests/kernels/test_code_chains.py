"""Chains of codes against lists: whatever was linked is joined, once, also if the output is full in between."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpg.kernels import code_chains as kernels
from kpg.kernels.code_sets import FAR_SLOTS, write_starts
from kpg.seminaive.chain_index import ChainIndex
from kpg.seminaive.code_layout import CodeLayout
from kpg.seminaive.code_set import CodeSet
from kpg.testing import kernel_twins as twins

BITS = 3  # of each of two columns
codes = st.lists(st.integers(0, (1 << 2 * BITS) - 1), max_size=20, unique=True)
keys = st.lists(st.integers(0, (1 << BITS) - 1), max_size=50)


def ints(values):
    return np.array(values, np.int64)


def linked(parts):
    """Return the arrays of chains, linked part by part."""
    total = sum(map(len, parts))
    arrays = (np.empty(total, np.int64), np.empty(total, np.int32))
    by_key = (np.full(1 << BITS, -1, np.int32), np.zeros(1 << BITS, np.int32))
    used = 0
    for part in parts:
        kernels.link_codes(ints(part), BITS, used, *arrays, *by_key)
        used += len(part)
    return *arrays, *by_key


@given(codes, st.integers(0, 20), keys, st.integers(1, 30), st.integers(0, 20))
def test_pairs_are_those_of_lists(codes, cut, keys, room, limit):
    _, following, heads, lengths = linked([codes[:cut], codes[cut:]])
    chains = twins.link_codes(codes, BITS)
    assert kernels.count_links(ints(keys), lengths) == sum(len(chains.get(key, [])) for key in keys)
    found, row, link = [], 0, -1
    while row < len(keys):
        lefts, rights = np.empty(room, np.int64), np.empty(room, np.int64)
        row, link, n = kernels.expand_chains(ints(keys), following, heads, lefts, rights, limit, row, link)
        found += zip(lefts[:n].tolist(), rights[:n].tolist(), strict=True)
    assert found == [pair for pair in twins.expand_chains(keys, chains) if pair[1] < limit]


@pytest.mark.parametrize("slots", [1 << 10, FAR_SLOTS])
@settings(max_examples=50)
@given(
    codes=codes,
    keys=keys,
    room=st.integers(1, 30) | st.integers(31, 90),
    moves=st.sampled_from([((0, BITS),), ((BITS, 0), (0, BITS)), ()]),
)
def test_sums_are_inserted_once(slots, codes, keys, room, moves):
    stored, following, heads, _ = linked([codes])
    left = [key << 2 * BITS for key in keys]
    sources, targets = ints([source for source, _ in moves]), ints([target for _, target in moves])
    masks, table = ints([(1 << BITS) - 1] * len(moves)), np.full(slots, -1, np.int64)
    found, row, link = [], 0, -1
    while row < len(left):
        out = np.empty(room, np.int64)
        chains = (stored, following, heads, sources, targets, masks)
        row, link, n = kernels.insert_chain_sums(
            ints(left), ints(keys), *chains, table, len(table) - 1, out, len(codes), row, link
        )
        found += out[:n].tolist()
    chains = twins.link_codes(codes, BITS)
    assert found == twins.insert_chain_sums(left, keys, codes, chains, list(moves), BITS, set())


@given(codes, codes, keys)
def test_an_index_by_chains_tells_rounds_apart(first, second, keys):
    """Rows of the index have their columns swapped: the key is the second column of the relation."""
    layout, second = CodeLayout((BITS, BITS)), [code for code in second if code not in first]
    index = ChainIndex(layout, (1, 0))
    assert ChainIndex.can_index(layout, (1, 0), 1) and not ChainIndex.can_index(layout, (1,), 1)
    index.add(ints(first))
    assert index.limit(True) == len(first)
    index.begin_round()
    index.add(ints(second))
    assert (index.limit(True), index.limit(False), index.row_count) == (len(first), len(first + second), index._used)

    def swapped(codes):
        return [((code & 7) << BITS) | code >> BITS for code in codes]

    for limit, rows in ((index.limit(True), swapped(first)), (index.limit(False), swapped(first + second))):
        parts = [(a.tolist(), index.codes[b].tolist()) for a, b in index.pairs(ints(keys), limit)]
        pairs = [(keys[i], row) for a, b in parts for i, row in zip(a, b, strict=True)]
        assert sorted(pairs) == sorted((key, row) for key in keys for row in rows if row >> BITS == key)
        members = CodeSet(4 * BITS)
        left = [key << 2 * BITS for key in keys]
        new = [code for part in members.extend_chains(ints(left), ints(keys), index, ((1, 0),), limit) for code in part]
        assert sorted(new) == sorted({(key << 2 * BITS) + (row & 7) for key, row in pairs})


@given(st.lists(st.integers(0, 63), max_size=12), st.integers(1, 12))
def test_starts_are_where_keys_begin(codes, count):
    starts = np.empty(count, np.int64)
    write_starts(ints(sorted(codes)), 3, starts)
    assert starts.tolist() == [sum(code >> 3 < key for code in codes) for key in range(count)]

"""Values by ids, and rows that come and go: what a change costs does not depend on how much is there."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from kpg.seminaive import code_index, row_codes
from kpg.seminaive.code_index import CodeIndex
from kpg.seminaive.code_log import CodeLog
from kpg.seminaive.code_set import CodeLevels, CodeSet
from kpg.seminaive.row_codes import Ids, Layout, each_once

NEAR = st.integers(-50, 3000)
FAR = st.integers(-(2**62), 2**62)
ENDS = st.sampled_from([-(2**63), 6 - 2**63, 7 - 2**63, 2**63 - 1, 2**63 - 9])


@example([[7 - 2**63], [-(2**63)]], 2)
@given(st.lists(st.lists(st.one_of(NEAR, FAR, ENDS), max_size=30), max_size=12), st.sampled_from([2, row_codes.LATE]))
def test_every_value_keeps_the_id_it_got(parts, late):
    ids, known, before = Ids(), {}, row_codes.LATE
    row_codes.LATE = late
    try:
        for part in parts:
            ids.add(np.array(part, np.int64))
            values = ids.values.tolist()
            assert len(set(values)) == len(values) == len(ids)
            assert set(values) == set(known) | set(part)
            assert all(values[number] == value for value, number in known.items())
            assert ids.of(np.array(values, np.int64)).tolist() == list(range(len(ids)))
            assert ids.of(np.array([5001, 2**62 + 1], np.int64)).tolist() == [-1, -1] or {5001, 2**62 + 1} & set(values)
            assert ids.ordered == (values == sorted(values))
            known = {value: number for number, value in enumerate(values)}
    finally:
        row_codes.LATE = before


CHANGES = st.lists(st.tuples(st.booleans(), st.sets(st.integers(0, 63), max_size=9)), max_size=20)


@given(CHANGES, st.sampled_from([0, 4, code_index.SHORT]), st.sampled_from([1, code_index.FEW]))
def test_an_index_has_what_came_and_did_not_go(changes, short, few):
    there, kept, found = set(), CodeLog(), CodeIndex(Layout(3, 2), (1, 0), 1)
    before = code_index.SHORT, code_index.FEW
    code_index.SHORT, code_index.FEW = short, few
    try:
        for came, rows in changes:
            rows = rows - there if came else rows & there
            there = there | rows if came else there - rows
            (kept.put if came else kept.drop)(np.array(sorted(rows), np.int64))
            (found.add if came else found.remove)(np.array(sorted(rows), np.int64))
            assert len(found) == len(there)
            assert sorted(set(stored(found))) == sorted(there)
            if came and len(there) % 3 == 0:
                assert sorted(kept.all().tolist()) == sorted(there)
        found.settle()
        assert sorted(stored(found)) == sorted(there) == sorted(kept.all().tolist())
    finally:
        code_index.SHORT, code_index.FEW = before


def stored(found):
    """The rows of an index, found key by key."""
    for run, low, high in found.find(np.arange(8)):
        for start, end in zip(low.tolist(), high.tolist(), strict=True):
            rows = np.arange(start, end)
            standing = run.standing(rows)
            for code in run.codes[rows if standing is None else rows[standing]].tolist():
                yield (code & 7) << 3 | code >> 3


def test_little_changes_of_a_large_index_leave_its_long_run_alone():
    found = CodeIndex(Layout(20, 2), (0, 1), 1)
    found.add(np.arange(0, 4 * code_index.SHORT, 2))
    long = found.runs[0].codes
    for number in range(200):
        found.add(np.array([2 * number + 1]))
        found.remove(np.array([2 * number]))
    assert found.runs[0].codes is long
    assert len(found.runs) == 2
    assert len(found) == 2 * code_index.SHORT


@given(st.lists(st.one_of(st.integers(-5, 40), st.integers(-(2**62), 2**62 - 1)), max_size=30))
@example([0, 7])  # just close enough for a table
@example([0, 16])  # just not
def test_values_come_in_order_and_once(values):
    """A8.4: close together and far apart."""
    given_values = np.array(values, np.int64)
    assert each_once(given_values).tolist() == sorted(set(values))
    assert given_values.tolist() == values


@given(st.sets(st.integers(0, 2**12 - 1), max_size=60), st.sampled_from([12, 20, 40]), st.integers(1, 5))
def test_levels_made_of_rounds_are_those_put_one_by_one(codes, width, rounds):
    """A8.4: an array of levels, a bitmap of members that has no table to give away, and a table that is taken over."""
    spread = [np.array(sorted(codes)[at::rounds], np.int64) << (width - 12) for at in range(rounds)]
    members = CodeSet(width)
    for part in spread:
        members.insert(part)
    made, one_by_one = CodeLevels.of_rounds(width, members, spread), CodeLevels(width)
    for level, part in enumerate(spread):
        one_by_one.put(part, level)
    more = np.arange(3000) << (width - 12)
    for levels in (made, one_by_one):
        levels.put(more[::3].copy(), 7)  # there is room for more than was there
        levels.put(more[::9].copy(), -1)
    asked = np.arange(2**12) << (width - 12)
    assert made.get(asked).tolist() == one_by_one.get(asked).tolist()
    assert sorted(zip(*map(np.ndarray.tolist, made.items()), strict=True)) == sorted(
        zip(*map(np.ndarray.tolist, one_by_one.items()), strict=True)
    )

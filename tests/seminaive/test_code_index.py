"""Value ids, code indexes, code logs and levels: each against a plain model, and at a cost that follows the change."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from kpg.columns import pause_points
from kpg.columns.pause_points import taking_turns
from kpg.seminaive import code_index, row_codes
from kpg.seminaive.code_index import CodeIndex
from kpg.seminaive.code_layout import CodeLayout
from kpg.seminaive.code_log import CodeLog
from kpg.seminaive.code_set import CodeLevels, CodeSet
from kpg.seminaive.row_codes import ValueIds, sorted_distinct

NEAR = st.integers(-50, 3000)
FAR = st.integers(-(2**62), 2**62)
ENDS = st.sampled_from([-(2**63), 6 - 2**63, 7 - 2**63, 2**63 - 1, 2**63 - 9])


@example([[7 - 2**63], [-(2**63)]], 2)
@given(
    st.lists(st.lists(st.one_of(NEAR, FAR, ENDS), max_size=30), max_size=12),
    st.sampled_from([2, row_codes.MAX_LATE_VALUES]),
)
def test_every_value_keeps_the_id_it_got(parts, late):
    ids, known, before = ValueIds(), {}, row_codes.MAX_LATE_VALUES
    row_codes.MAX_LATE_VALUES = late
    try:
        for part in parts:
            ids.add(np.array(part, np.int64))
            values = ids.values.tolist()
            assert len(set(values)) == len(values) == len(ids)
            assert set(values) == set(known) | set(part)
            assert all(values[number] == value for value, number in known.items())
            assert ids.lookup(np.array(values, np.int64)).tolist() == list(range(len(ids)))
            assert ids.lookup(np.array([5001, 2**62 + 1], np.int64)).tolist() == [-1, -1] or {5001, 2**62 + 1} & set(
                values
            )
            assert ids.ordered == (values == sorted(values))
            known = {value: number for number, value in enumerate(values)}
    finally:
        row_codes.MAX_LATE_VALUES = before


CHANGES = st.lists(st.tuples(st.booleans(), st.sets(st.integers(0, 63), max_size=9)), max_size=20)


@given(CHANGES, st.sampled_from([0, 4, code_index.SHORT_RUN_ROWS]), st.sampled_from([1, code_index.FEW_CHANGED_ROWS]))
def test_an_index_and_a_log_hold_what_was_inserted_and_not_removed(changes, short, few):
    expected, log, index = set(), CodeLog(), CodeIndex(CodeLayout((3, 3)), (1, 0), 1)
    before = code_index.SHORT_RUN_ROWS, code_index.FEW_CHANGED_ROWS
    code_index.SHORT_RUN_ROWS, code_index.FEW_CHANGED_ROWS = short, few
    try:
        for inserted, rows in changes:
            rows = rows - expected if inserted else rows & expected
            expected = expected | rows if inserted else expected - rows
            codes = np.array(sorted(rows), np.int64)
            (log.insert if inserted else log.remove)(codes)
            (index.add if inserted else index.remove)(codes)
            assert len(index) == len(expected)
            assert sorted(set(stored(index))) == sorted(expected)
            if inserted and len(expected) % 3 == 0:
                assert sorted(log.current().tolist()) == sorted(expected)
        index.purge_removed()
        assert sorted(stored(index)) == sorted(expected) == sorted(log.current().tolist())
    finally:
        code_index.SHORT_RUN_ROWS, code_index.FEW_CHANGED_ROWS = before


def stored(index):
    """Yield the rows of an index, found key by key."""
    for run, low, high in index.find(np.arange(8)):
        for start, end in zip(low.tolist(), high.tolist(), strict=True):
            rows = np.arange(start, end)
            remaining = run.remaining(rows)
            for code in run.codes[rows if remaining is None else rows[remaining]].tolist():
                yield (code & 7) << 3 | code >> 3


def test_small_changes_of_a_large_index_do_not_copy_its_long_run():
    index = CodeIndex(CodeLayout((20, 20)), (0, 1), 1)
    index.add(np.arange(0, 4 * code_index.SHORT_RUN_ROWS, 2))
    long = index.runs[0].codes
    for number in range(200):
        index.add(np.array([2 * number + 1]))
        index.remove(np.array([2 * number]))
    assert index.runs[0].codes is long
    assert len(index.runs) == 2
    assert len(index) == 2 * code_index.SHORT_RUN_ROWS


@given(st.lists(st.one_of(st.integers(-5, 40), st.integers(-(2**62), 2**62 - 1)), max_size=30))
@example([0, 7])  # just close enough for a table
@example([0, 16])  # just not
def test_sorted_distinct_values_are_each_value_once_in_order(values):
    """A8.4: close together and far apart."""
    given_values = np.array(values, np.int64)
    assert sorted_distinct(given_values).tolist() == sorted(set(values))
    assert given_values.tolist() == values


@given(st.sets(st.integers(0, 2**12 - 1), max_size=60), st.sampled_from([12, 20, 40]), st.integers(1, 5))
def test_levels_built_from_rounds_equal_levels_put_one_by_one(codes, width, rounds):
    """A8.4: an array of levels, a bitmap, which has no table to take over, and a hash table that is taken over."""
    spread = [np.array(sorted(codes)[at::rounds], np.int64) << (width - 12) for at in range(rounds)]
    members = CodeSet(width)
    for part in spread:
        members.insert(part)
    with_levels = [
        (part, np.array([level]) if level % 2 else np.full(len(part), level)) for level, part in enumerate(spread)
    ]
    of_rounds, one_by_one = CodeLevels.of_rounds(width, members, with_levels), CodeLevels(width)
    for level, part in enumerate(spread):
        one_by_one.put(part, level)
    more = np.arange(3000) << (width - 12)
    for levels in (of_rounds, one_by_one):
        levels.put(more[::3].copy(), 7)  # more codes than the set held
        levels.put(more[::9].copy(), -1)
    asked = np.arange(2**12) << (width - 12)
    assert of_rounds.get(asked).tolist() == one_by_one.get(asked).tolist()
    assert sorted(zip(*map(np.ndarray.tolist, of_rounds.items()), strict=True)) == sorted(
        zip(*map(np.ndarray.tolist, one_by_one.items()), strict=True)
    )


class CountingTurns:
    """Waits for the helper thread, and records the seconds of each of its parts."""

    def __init__(self):
        self.parts = []

    def pause(self):
        """Let nothing run."""

    def wait(self, future):
        future.result()
        return True

    def charge(self, seconds):
        self.parts.append(seconds)


def test_levels_of_many_rows_are_built_in_parts_between_which_the_work_can_end():
    """A client that leaves ends them: the helper thread computed those of 24 million rows in one part of a second."""
    members, codes = CodeSet(40), np.arange(5 * pause_points.ROWS_PER_ASIDE // 2) * 3
    members.insert(codes)
    turns = CountingTurns()
    with taking_turns(turns):
        levels = CodeLevels.of_rounds(40, members, [(codes, np.array([4]))])
    assert len(turns.parts) == len(levels._levels) // pause_points.ROWS_PER_ASIDE + 3
    assert (levels.get(codes) == 4).all()

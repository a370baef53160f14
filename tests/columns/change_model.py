"""The meaning of changes to a set or function of rows, one change after the other."""

from hypothesis import strategies as st

ROWS = st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2))
CHANGES = st.lists(st.tuples(ROWS, st.sampled_from([1, 1, -1])), min_size=1, max_size=6)


def model(there: set, changes: list, key: int, order: int | None) -> set:
    """The rows after some changes, one after the other."""
    last = {}
    for row, diff in changes:
        last.pop(row, None)
        last[row] = diff
    after = {row[:key]: row for row in there if last.get(row, 1) > 0}
    for row, diff in last.items():
        if diff > 0:
            old = after.get(row[:key])
            if old is None or order is None or row[order] >= old[order]:
                after[row[:key]] = row
    return set(after.values())

"""Variance and median of groups, against Python's statistics module, while rows come and go."""

import statistics

from hypothesis import given, settings
from hypothesis import strategies as st

import kpg

ROWS = st.lists(st.tuples(st.integers(0, 1), st.one_of(st.none(), st.integers(-(10**12), 10**12))), max_size=6)


@settings(max_examples=25, deadline=None)
@given(st.lists(ROWS, min_size=1, max_size=3))
def test_statistics_of_groups(epochs):
    with kpg.open() as db:
        table = db.input("t", k=int, v=int | None)
        variance = table.group_by("k").variance("v").output("variance")
        median = table.group_by("k").median("v", "middle").output("median")
        before: list = []
        for rows in epochs:
            table.remove(before)
            table.insert(rows)
            before = rows
            db.advance()
            groups: dict[int, list[int]] = {}
            for key, value in rows:
                if value is not None:
                    groups.setdefault(key, []).append(value)
            assert dict(median.rows()) == {key: statistics.median_high(values) for key, values in groups.items()}
            expected = {key: float(statistics.pvariance(values)) for key, values in groups.items()}
            variances = dict(variance.rows())
            assert variances.keys() == expected.keys()
            for key, value in expected.items():
                assert abs(variances[key] - value) <= 1e-9 * max(1.0, value)

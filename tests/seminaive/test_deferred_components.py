"""Components whose first load has no lists equal those of passes over all edges, and those with lists."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpg.seminaive import least_values
from kpg.seminaive.deferred_components import DeferredComponents, components_of
from kpg.seminaive.graph_lists import GraphChange
from kpg.seminaive.least_values import LeastValues, LeastValueSpec
from kpg.testing import kernel_twins as twins

SPEC = LeastValueSpec("test", 1000, both_ways=True, own_starts=True, deferred=True)
FAR = 10**15

edges = st.dictionaries(
    st.tuples(st.integers(-2, 6), st.integers(-2, 6)), st.sampled_from([1, 1, 2, -1, -2]), max_size=12
)


def change_of(changes, factor):
    rows = sorted(changes.items())
    data = np.array([row for row, _ in rows], np.int64).reshape(len(rows), 2).T * factor
    return GraphChange(np.ascontiguousarray(data), np.array([diff for _, diff in rows], np.int64))


def apply(answer, changed):
    diffs = np.broadcast_to(changed.diffs[0], changed.data.shape[1]).tolist()
    rows = list(zip(map(tuple, changed.data.T.tolist()), diffs, strict=True))
    assert not changed.is_sorted or [row for row, _ in rows] == sorted(row for row, _ in rows)
    for row, diff in sorted(rows, key=lambda pair: pair[1]):
        assert (row in answer) == (diff < 0)
        (answer.remove if diff < 0 else answer.add)(row)


@settings(max_examples=150)
@given(st.lists(edges, min_size=1, max_size=6), st.sampled_from([1, FAR]), st.sampled_from([1, 4]))
def test_components_equal_those_of_lists_under_all_changes(epochs, factor, load_rows):
    """Loads without rows, and changes that remove all rows, are among the changes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(least_values, "MIN_HEAP", load_rows)
        components, listed, answers = DeferredComponents(SPEC), LeastValues(SPEC), (set(), set())
        counts = {}
        for changes in epochs:
            changes = {row: diff for row, diff in changes.items() if counts.get(row, 0) + diff >= 0}
            for values, answer in zip((components, listed), answers, strict=True):
                apply(answer, values.change(change_of({}, 1), change_of(changes, factor)))
            for row, diff in changes.items():
                counts[row] = counts.get(row, 0) + diff
            assert answers[0] == answers[1]
            ends = [row for row, count in counts.items() if count]
            labels = twins.connect([(a + 2, b + 2) for a, b in ends], 9)
            nodes = {node for row in ends for node in row}
            assert answers[0] == {(node * factor, (labels[node + 2] - 2) * factor) for node in nodes}
            assert components.row_count() == len(nodes)
            assert set(components.used_nodes()[0].tolist()) == {node * factor for node in nodes}


def test_the_first_change_after_a_load_builds_the_lists(monkeypatch):
    monkeypatch.setattr(least_values, "MIN_HEAP", 1)
    components, chain = DeferredComponents(SPEC), {(n, n + 1): 1 for n in range(5, 50)}
    before = components.nbytes
    components.change(change_of({}, 1), change_of(chain, 1))
    assert components.graph.node_count == 1 and components.nbytes - before == 8 * (2 * len(chain) + 1)
    changed = components.change(change_of({}, 1), change_of({(20, 21): -1}, 1))
    assert components.graph.node_count == 47  # with node 0
    assert changed.data.shape[1] == 2 * 30  # nodes 21 to 50 leave component 5 and enter 21


def test_nodes_far_apart_have_no_table():
    assert components_of(np.array([[0], [FAR]])) is None
    assert components_of(np.array([[FAR, FAR + 2], [FAR + 2, FAR + 1]])).tolist() == [
        [FAR, FAR + 1, FAR + 2],
        [FAR, FAR, FAR],
    ]

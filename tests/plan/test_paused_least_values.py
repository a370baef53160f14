"""An operator of least values that pauses inside an update: changes and symbol collection meanwhile, A6.6."""

from random import Random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import kpg
from kpg.api import usage_guard
from kpg.api.query_limits import QueryLimits
from kpg.seminaive import least_values
from tests.dataflow.test_slices import tiny_pieces


@pytest.mark.parametrize("name", ["reach", "bfs", "sssp"])
@settings(max_examples=4, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(seed=st.integers(0, 2**32))
def test_a_paused_update_is_not_disturbed(name, seed):
    """Nodes are texts, some new in each epoch, so that symbols become garbage."""
    random = Random(seed)
    with kpg.open() as whole, kpg.open() as sliced, tiny_pieces(seed), pytest.MonkeyPatch.context() as patch:
        patch.setattr(least_values, "VISITS_PER_PAUSE", 0)
        patch.setattr(usage_guard, "MEASURE_SECONDS", 0.0)
        guard = sliced.limit_queries(QueryLimits())
        inputs = [
            (db.input("edges", src=str, dst=str, weight=int), db.input("roots", node=str)) for db in (whole, sliced)
        ]
        expected, answer = [getattr(kpg.graphs, name)(*pair).output("answer") for pair in inputs]
        for dataflow in sliced.worker.dataflows.values():
            guard.admit(dataflow)  # measures its state at every pause
        present = set()
        for epoch in range(random.randrange(3, 7)):
            nodes = ["a", "b", "c", "d", f"node {epoch}"]
            rows = {(random.choice(nodes), random.choice(nodes), random.randrange(3)) for _ in range(8)}
            removed = {row for row in sorted(present) if random.random() < 0.4} - rows
            for edges, roots in inputs:
                edges.insert(sorted(rows - present))
                edges.remove(sorted(removed))
                if epoch == 0:
                    roots.insert([("a",)])
            present = (present | rows) - removed
            whole.advance()
            sliced.advance(wait=False)
            for _ in range(random.randrange(6)):
                sliced.work(0.0)
            if random.random() < 0.4:
                sliced.reclaim()
        sliced.settle()
        assert answer.rows() == expected.rows()

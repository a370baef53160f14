"""Filter, negate and concat over an arrangement share its batches when joined by its key."""

from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg import col
from kpg.operators.arrange import Arrange
from kpg.testing import denotations as means
from kpg.testing.strategies import rows

Rows = st.lists(rows(2, 3), max_size=8)


def arrangements_of(db: kpg.Database, name: str) -> list[Arrange]:
    """The arrangements that a query made for itself, its answer's aside."""
    (dataflow,) = [dataflow for dataflow in db.worker.dataflows.values() if dataflow.name == name]
    return [op for op in dataflow.operators if isinstance(op, Arrange) and op.key_lanes < op.batcher.lanes]


@given(Rows, Rows, Rows)
def test_views_share_the_index_and_mean_what_their_stream_operators_mean(
    edges: list[tuple[int, int]], queries: list[tuple[int, int]], removed: list[tuple[int, int]]
) -> None:
    """A5.1: filter, negate and concat as wrappers around an arrangement."""
    with kpg.open() as db:
        left, right = db.input("left", k=int, v=int), db.input("right", k=int, w=int)
        by_key, other = left.arrange("k"), right.arrange("k")
        view = by_key.filter(col("v") > 1).concat(by_key.negate())
        answer = view.join(other.filter(col("w") != 2), on="k").output("views")
        assert not arrangements_of(db, "views")
        plain = left.select("k", "v").filter(col("v") > 1).concat(left.select("k", "v").negate())
        expected = plain.join(right.select("k", "w").filter(col("w") != 2), on="k").output("streams")
        left.insert(edges)
        right.insert(queries)
        db.advance()
        left.remove(removed)
        db.advance()
        tables = [output.snapshot(counts=True).to_pylist() for output in (answer, expected)]
        mine, theirs = ({tuple(row.values()) for row in table} for table in tables)
        assert mine == theirs
        now = means.concat(dict.fromkeys(()), means.consolidate([(row, 1) for row in edges]))
        now = means.concat(now, means.negate(means.consolidate([(row, 1) for row in removed])))
        kept = means.concat(means.filter(now, lambda row: row[1] > 1), means.negate(now))
        asked = means.filter(means.consolidate([(row, 1) for row in queries]), lambda row: row[1] != 2)
        wanted = means.join(kept, asked, (0,), (0,))
        assert mine == {(*row, count) for row, count in wanted.items()}

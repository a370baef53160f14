"""Reaching the memory limit raises a clear error, and other queries continue."""

import numpy as np
import pytest

import kpg
from kpg import col
from kpg.api.memory import resident_bytes

MEGABYTE = 1 << 20


def held() -> int:
    """The memory of this process once the machine code of the queries below is loaded."""
    with kpg.open() as db:
        pairs = db.input("pairs", k=int, v=int)
        few = pairs.filter(col("k") > 0).count().output("few")
        pairs.join(pairs.rename(v="w"), on="k").select("v", "w").distinct().count("v").output("some")
        pairs.insert(np.ones((2_000, 2), np.int64) * np.arange(2_000)[:, None])
        db.advance()
        assert few.rows() == [(1_999,)]
    return resident_bytes()


def test_a_query_that_needs_too_much_memory_is_dropped_and_the_others_continue() -> None:
    """OverBudget names the limit; the db and its other answers stay usable."""
    with kpg.open(memory_limit=held() + 400 * MEGABYTE) as db:
        pairs = db.input("pairs", k=int, v=int)
        count = pairs.count("k").output("count")
        huge = pairs.join(pairs.rename(v="w"), on="k").select("v", "w").distinct().output("huge")
        pairs.insert(np.stack([np.zeros(20_000, np.int64), np.arange(20_000)], axis=1))  # 400 million pairs
        db.advance()
        with pytest.raises(kpg.OverBudget, match="memory limit"):
            huge.snapshot()
        assert count.rows() == [(0, 20_000)]
        pairs.insert([(1, 1)])
        db.advance()
        assert count.rows() == [(0, 20_000), (1, 1)]


def test_rows_that_exceed_the_limit_are_refused() -> None:
    """An insert over the limit is refused as a whole."""
    with kpg.open(memory_limit=held() + 100 * MEGABYTE) as db:
        rows = db.input("rows", k=int)
        answer = rows.filter(col("k") > 0).count().output("answer")
        rows.insert([(1,), (2,)])
        with pytest.raises(kpg.OverBudget, match="over the memory limit"):
            rows.insert(np.arange(40_000_000))
        db.advance()
        assert answer.rows() == [(2,)]

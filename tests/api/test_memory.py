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


def test_rows_that_were_accepted_stay_when_the_limit_is_reached_while_they_are_arranged() -> None:
    """The limit stops queries. The dataflow that arranges an input goes on, and the advance raises."""
    with kpg.open(memory_limit=1 << 50) as db:
        pairs = db.input("pairs", key="k", k=int, v=int)
        total = 0
        for rows in (1_000, 3_000_000, 2):  # few are arranged directly, and many with large allocations
            keys = np.arange(total, total + rows)[::-1]
            pairs.insert({"k": keys, "v": keys})
            db.memory.limit = 1
            with pytest.raises(kpg.OverBudget):
                db.advance()
            db.memory.limit = 1 << 50
            total += rows
            assert pairs.size == total
        assert pairs.count().output("count").rows() == [(total,)]

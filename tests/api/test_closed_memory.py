"""A closed db keeps no rows, although the caller still holds the db, its inputs and its outputs."""

import gc
from collections.abc import Callable

import numpy as np
import pytest

import kpg
from kpg import col
from kpg.columns.updates import Updates

ROWS = 5_000
MANY_ROWS = 1_000  # no other object of the process has as many

Build = Callable[[kpg.Input], kpg.Collection]


def arranged(pairs: kpg.Input) -> kpg.Collection:
    """All rows, from an arrangement that the caller holds."""
    pairs.arrange("v")
    return pairs


QUERIES: dict[str, Build] = {
    "rows": lambda pairs: pairs,
    "arrange": arranged,
    "count": lambda pairs: pairs.count("k"),
    "distinct": lambda pairs: pairs.select("k").distinct(),
    "minimum": lambda pairs: pairs.group_by("k").min("v"),
    "join": lambda pairs: pairs.join(pairs.rename(v="w"), on="k"),
    "filter": lambda pairs: pairs.filter(col("v") // col("k") >= 0),
    "recursion": lambda pairs: pairs.iterate(lambda loop: loop.concat(pairs).distinct()),
}


def held_updates() -> list[Updates]:
    """The objects of this process that hold many rows."""
    return [held for held in gc.get_objects() if isinstance(held, Updates) and len(held) >= MANY_ROWS]


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("query", QUERIES)
def test_close_frees_the_rows_without_a_garbage_collection(query: str, keep: bool) -> None:
    """A second load finds the memory free: traces hold each other in cycles, which are collected late."""
    gc.collect()
    before = {id(held) for held in held_updates()}
    gc.disable()
    try:
        with kpg.open() as db:
            pairs = db.input("pairs", k=int, v=int)
            answer = QUERIES[query](pairs).output("answer", keep=keep)
            pairs.insert(np.stack([np.arange(ROWS) + 1, np.arange(ROWS)], axis=1))
            db.advance()
            answer.take_changes()
            assert any(id(held) not in before for held in held_updates())
        assert [len(held) for held in held_updates() if id(held) not in before] == []
    finally:
        gc.enable()
    assert answer.name == "answer" and pairs.name == "pairs"  # still held here

"""Pairs of hot keys that workers share are the pairs of the join: with removals, texts, in loops, on any network."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg import col
from kpg.columns.consolidation import consolidate_all
from kpg.columns.updates import Updates, constant
from kpg.operators import deferred_work, shared_pairs
from kpg.operators.shared_pairs import PairShares, SharedPairs
from kpg.testing import denotations
from kpg.trace.match_batches import Match
from tests.api import test_joins, test_recursion
from tests.api.plays import Query, examples, plays
from tests.dataflow import test_adversarial_network as network


@contextmanager
def everything_is_hot(slice_updates: int) -> Iterator[list[int]]:
    """Share every key that a slice does not finish; yield a list that gets the rows of each shared message."""
    shared: list[int] = []
    read = PairShares.read

    def count(self: PairShares, rows: Updates) -> tuple[Updates, Updates]:
        shared.append(len(rows))
        return read(self, rows)

    with (
        mock.patch.object(deferred_work, "SLICE_UPDATES", slice_updates),
        mock.patch.object(deferred_work, "SHORT_SLICE_UPDATES", slice_updates),
        mock.patch.object(shared_pairs, "MIN_SHARED_PAIRS", 1),
        mock.patch.object(shared_pairs, "MIN_PAIRS_PER_SENT_ROW", 0),
        mock.patch.object(PairShares, "read", count),
    ):
        yield shared


JOINS = {
    **network.some(test_joins.JOINS, "two hops", "three hops", "join of computed", "join by none", "join"),
    "count of two hops": Query(
        lambda db, r: r["a"].join(r["b"], on={"y": "x"}).select(x="x", y="y_right").count("y"),
        lambda a, b: denotations.count(denotations.select(denotations.join(a, b, (1,), (0,)), (0, 2)), (1,)),
        test_joins.BOTH,
    ),
}


@examples(0.15)
@given(
    play=plays(test_joins.ROWS, max_size=10),
    peers=st.sampled_from([1, 2, 3]),
    slice_updates=st.integers(1, 3),
    noise=network.NOISE,
)
def test_shared_pairs_are_the_pairs_of_the_join(play, peers, slice_updates, noise):
    with everything_is_hot(slice_updates):
        network.check(play, test_joins.SCHEMAS, JOINS, peers, noise)


@examples(0.06)
@given(data=st.data(), peers=st.sampled_from([2, 3]), slice_updates=st.integers(1, 3), noise=network.NOISE)
def test_shared_pairs_are_right_in_loops(data, peers, slice_updates, noise):
    play = data.draw(plays(test_recursion.ROWS, negative=False, largest=1, max_size=6))
    with everything_is_hot(slice_updates):
        network.check(play, test_recursion.SCHEMAS, network.CASES["programs"][1], peers, noise)


sides = st.tuples(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 9), st.integers(-2, 2)), max_size=12),
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 9), st.integers(-2, 2)), max_size=12),
)


@given(sides=sides, limit=st.integers(1, 7), peers=st.integers(1, 4))
def test_a_product_is_the_sum_of_its_shares(sides, limit, peers):
    """Whatever was paired when the rest of a key is given away, and however it is divided."""
    left, right = (
        consolidate_all([side_updates(side, time)]) for side, time in zip(sides, ((3, 1), (2,)), strict=True)
    )
    projection = np.array([(0, 1), (1, 1)])
    shares = PairShares(peers, (2, 2), (1, 1), depth=2)
    whole = list(slices(Match(left, right, 1, projection, 2), limit))
    match, parts = Match(left, right, 1, projection, 2), []
    while (updates := match.next(limit)) is not None:
        parts.append(updates)
        if all(match.rows_left_of_key()):
            for box in match.take_rest_of_key():
                for rows in shares.divide(*box):
                    parts += slices(Match(*shares.read(rows), 1, projection, 2), limit)
    assert as_rows(parts) == as_rows(whole)


def side_updates(rows: list[tuple[int, int, int]], time: tuple[int, ...]) -> Updates:
    data = np.array([row[:2] for row in rows], np.int64).reshape(-1, 2).T.copy()
    diffs = np.array([[row[2] for row in rows]], np.int64) if rows else np.zeros((1, 1), np.int64)
    return Updates(data, constant(time), diffs)


def slices(match: Match, limit: int) -> Iterator[Updates]:
    while (updates := match.next(limit)) is not None:
        yield updates


def as_rows(parts: list[Updates]) -> list[tuple[list[int], list[int], list[int]]]:
    if not parts:
        return []
    sums = consolidate_all(list(parts))
    blocks = [np.broadcast_to(block, (block.shape[0], len(sums))) for block in (sums.data, sums.times, sums.diffs)]
    return [tuple(block[:, i].tolist() for block in blocks) for i in range(len(sums))]  # type: ignore[misc]


@pytest.mark.parametrize("workers", [2, 3])
def test_workers_share_the_pairs_of_a_hot_key_with_texts(workers):
    """Between processes: each worker numbers texts by itself, and all of them produce pairs."""
    with kpg.open(workers=workers) as db:
        left, right = db.input("l", k=str, v=str), db.input("r", k=str, w=str)
        pairs = left.join(right, on="k").select(v=col("v"), w=col("w")).count("v").output("pairs")
        left.insert([("hot", f"v{i}") for i in range(2000)] + [("cold", "v0")])
        right.insert([("hot", f"w{i}") for i in range(1000)] + [("cold", "w0")])
        db.advance()
        assert dict(pairs.rows()) == {f"v{i}": 1000 + (i == 0) for i in range(2000)}
        left.remove([("hot", f"v{i}") for i in range(1999)])
        right.remove([("hot", "w0")])
        db.advance()
        assert dict(pairs.rows()) == {"v1999": 999, "v0": 1}


@pytest.mark.parametrize("peers", [2, 3])
def test_all_workers_get_a_share_of_a_hot_key(peers):
    def build(db: kpg.Database) -> kpg.Output:
        left, right = db.input("l", k=int, v=int), db.input("r", k=int, w=int)
        return left.join(right, on="k").select("v", "w").output("answer")

    with everything_is_hot(2) as shared:
        cluster = network.SimulatedCluster(peers, build)
        for number in range(6):
            cluster.insert(0, "l", (7, number))
            cluster.insert(0, "r", (7, number))
        cluster.advance()
    assert cluster.answer() == {(v, w): 1 for v in range(6) for w in range(6)}
    assert len(shared) >= peers and sum(shared) < 36


def test_pairs_that_stay_with_their_key_are_not_shared():
    def build(db: kpg.Database, *columns: str) -> list[str]:
        left, right = db.input("l", k=int, v=int), db.input("r", k=int, w=int)
        left.join(right, on="k").select(*columns).output("answer")
        return [
            type(operator).__name__
            for dataflow in db.worker.dataflows.values()  # type: ignore[attr-defined]
            for operator in dataflow.operators
        ]

    cluster = network.SimulatedCluster
    assert SharedPairs.__name__ in cluster(2).build(lambda db: build(db, "v", "w"))[0]
    assert SharedPairs.__name__ not in cluster(2).build(lambda db: build(db, "k", "v"))[0]
    assert SharedPairs.__name__ not in cluster(1).build(lambda db: build(db, "v", "w"))[0]


def test_only_keys_with_many_pairs_for_each_row_are_shared():
    shares = PairShares(2, (2, 2), (1, 1), 1)
    assert shares.is_worth_sharing(2000, 1000) and not shares.is_worth_sharing(100_000_000, 1)
    assert not shares.is_worth_sharing(100, 100) and not shares.is_worth_sharing(0, 0)

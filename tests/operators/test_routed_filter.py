"""Filters that receive only the batches with their constants give the rows and errors of filters that receive all."""

from contextlib import ExitStack
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg import col
from kpg.errors import DataError
from kpg.operators import key_routes, routed_filter
from kpg.plan import streams
from tests.api.plays import examples

K, N, S, V = col("k"), col("n"), col("s"), col("v")
CONDITIONS = [
    K == 1,
    1 == K,
    N == 1,
    (K == 1) & (N == 2),
    (S == "a") & (K > 0),
    (K == 1) & (K == 2),
    (K == 1) | (N == 1),
    (K == 1) & (10 // V == 10),  # fails where v is 0
    (N == 1) & (10 // V == 10),  # null & a failure is a failure
    (10 // V == 10) & (S == "b") & (K == 0),
    ~(K == 1),
    (V == 1) & (S == "a"),
]
rows = st.tuples(st.integers(0, 2), st.sampled_from([None, 1, 2]), st.sampled_from(["a", "b"]), st.integers(0, 2))
events = st.one_of(
    st.tuples(st.just("insert"), st.lists(rows, min_size=1, max_size=5)),
    st.tuples(st.just("remove"), st.lists(rows, min_size=1, max_size=2)),
    st.tuples(st.just("install"), st.none()),
    st.tuples(st.just("advance"), st.booleans()),
    st.tuples(st.just("idle"), st.none()),
)


def answers_of(story, by_key, routed):
    """Return the rows, or the errors, of every filter after each advance of a story."""
    seen = []
    with ExitStack() as stack:
        if not routed:
            stack.enter_context(mock.patch.object(streams, "routed_filter", lambda stream, constants: None))
        db = stack.enter_context(kpg.open())
        relation = db.input("r", k=int, n="int64?", s=str, v=int)
        arrangement = relation.arrange(*by_key) if by_key else relation
        outputs = []

        def install():
            for condition in CONDITIONS:
                filtered = arrangement.filter(condition).select("v", "k")
                outputs.append(filtered.output(f"o{len(outputs)}"))
            outputs.append(arrangement.filter(N == 1).filter(10 // V == 10).output(f"o{len(outputs)}"))
            outputs.append(arrangement.filter(10 // V == 10).filter(N == 1).output(f"o{len(outputs)}"))

        install()
        for kind, argument in [*story, ("advance", True)]:
            if kind == "insert":
                relation.insert(argument)
            elif kind == "remove":
                for row in argument:
                    relation.update_at([row], db.epoch, -1)
            elif kind == "install" and len(outputs) < 30:
                install()
            elif kind == "advance":
                db.advance(wait=argument)
                seen.append([answer_of(output) for output in outputs] if argument else [])
            elif kind == "idle":
                db.idle()
    return seen


def answer_of(output):
    try:
        return sorted(output.rows())
    except DataError as error:
        return str(error)


@examples(0.2)
@given(st.lists(events, max_size=25), st.sampled_from([(), ("k",), ("n",), ("s", "v")]), st.sampled_from([1, 64]))
def test_routed_filters_equal_filters(story, by_key, max_rows):
    with (
        mock.patch.object(routed_filter, "MIN_SEARCHED_ROWS", 1),
        mock.patch.object(key_routes, "MAX_ROUTED_ROWS", max_rows),
        mock.patch.object(key_routes, "ROUTED_ROWS_PER_IMPORTER", 0),
    ):
        assert answers_of(story, by_key, routed=True) == answers_of(story, by_key, routed=False)


@pytest.mark.parametrize("column", ["k", "v"])
def test_an_update_concerns_one_of_many_filters(column):
    with kpg.open() as db:
        busy = db.input("busy", k=int, v=int)
        by_key = busy.arrange("k")
        busy.insert(np.stack([np.arange(1000), np.arange(1000)], axis=1))
        db.advance()
        answers = [by_key.filter(col(column) == key).output(f"answer {key}") for key in range(20)]
        db.advance()
        before = db.worker.steps
        busy.insert([(7, 7)])
        busy.insert([(900, 900)])
        db.advance()
        assert db.worker.steps - before <= 5
        assert [len(answer.rows()) for answer in answers] == [2 if key == 7 else 1 for key in range(20)]
        for answer in answers:
            answer.release()
        assert not by_key.installed.publisher.importers


def test_a_filter_reads_only_its_part_of_a_large_arrangement():
    with kpg.open() as db:
        busy = db.input("busy", k=int, v=int)
        by_key = busy.arrange("k")
        busy.insert(np.stack([np.arange(10_000) % 100, np.arange(10_000)], axis=1))
        db.advance()
        read = []
        with mock.patch.object(
            routed_filter, "part_of", lambda *part: read.append(part[1:]) or ORIGINAL_PART_OF(*part)
        ):
            answer = by_key.filter((col("k") == 5) & (col("v") < 1000)).output("answer")
            db.advance()
        assert sorted(answer.rows()) == [(5, v) for v in range(5, 1000, 100)]
        assert read == [(500, 600)]


ORIGINAL_PART_OF = routed_filter.part_of

"""Joins that receive only the batches with their keys give the answers of joins that receive all."""

from collections import Counter
from contextlib import ExitStack
from unittest import mock

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg.operators import key_routes, routed_input
from kpg.operators.join import Join
from tests.api.plays import examples

keys = st.integers(0, 4)
events = st.one_of(
    st.tuples(st.just("busy"), st.lists(st.tuples(keys, st.integers(0, 2), st.sampled_from([1, 1, -1])), max_size=4)),
    st.tuples(st.just("ask"), st.tuples(st.integers(0, 2), keys, st.sampled_from([1, 1, -1]))),
    st.tuples(st.just("advance"), st.booleans()),
    st.tuples(st.just("idle"), st.none()),
)


class Play:
    """A busy relation, three queries that join it, and the same as counters."""

    def __init__(self, db):
        self.db = db
        self.busy = db.input("busy", k=int, v=int)
        self.arrangement = self.busy.arrange("k")
        self.asked = [db.input(f"asked {i}", k=int) for i in range(3)]
        self.answers = [
            self.arrangement.join(asked, on="k").output(f"answer {i}", keep=False) for i, asked in enumerate(self.asked)
        ]
        self.rows, self.keys, self.seen = Counter(), [Counter() for _ in range(3)], [Counter() for _ in range(3)]

    def do(self, kind, argument):
        if kind == "busy":
            for k, v, diff in argument:
                self.busy.update_at([(k, v)], self.db.epoch, diff)
                self.rows[k, v] += diff
        elif kind == "ask":
            query, k, diff = argument
            self.asked[query].update_at([(k,)], self.db.epoch, diff)
            self.keys[query][k] += diff
        elif kind == "advance":
            self.db.advance(wait=argument)
        else:
            self.db.idle()

    def check(self):
        self.db.advance()
        for answer, keys, seen in zip(self.answers, self.keys, self.seen, strict=True):
            for row, _, diff in answer.take_changes():
                seen[row] += diff
            expected = {row: n * keys[row[0]] for row, n in self.rows.items() if n * keys[row[0]]}
            assert {row: n for row, n in seen.items() if n} == expected


@examples(1)
@given(st.lists(events, max_size=40), st.sampled_from([1, 3]), st.sampled_from([1, 64]))
def test_routed_joins_equal_joins(story, max_keys, max_rows):
    with ExitStack() as stack:
        for module, name, value in [
            (routed_input, "MIN_ROUTED_ROWS", 1),
            (routed_input, "MAX_ROUTED_KEYS", max_keys),
            (key_routes, "MAX_ROUTED_KEYS", max_keys),
            (key_routes, "MAX_ROUTED_ROWS", max_rows),
        ]:
            stack.enter_context(mock.patch.object(module, name, value))
        play = Play(stack.enter_context(kpg.open()))
        for number, event in enumerate(story):
            play.do(*event)
            if number % 10 == 9:
                play.check()
        play.check()


def test_an_update_concerns_one_of_many_lookups():
    with kpg.open() as db:
        busy = db.input("busy", k=int, v=int)
        by_key = busy.arrange("k")
        busy.insert(np.stack([np.arange(1000), np.arange(1000)], axis=1))
        db.advance()
        answers = []
        for key in range(20):
            asked = db.input(f"asked {key}", k=int)
            asked.insert([(key,)])
            answers.append(by_key.join(asked, on="k").output(f"answer {key}"))
        db.advance()
        before = db.worker.steps
        busy.insert([(7, 8)])
        busy.insert([(900, 8)])
        db.advance()
        assert db.worker.steps - before <= 5
        assert [len(answer.rows()) for answer in answers] == [2 if key == 7 else 1 for key in range(20)]
        answers[7].release()
        busy.insert([(7, 9)])
        db.advance()
        assert answers[6].rows() == [(6, 6)]


def test_lookups_that_receive_nothing_do_not_keep_batches_apart():
    with kpg.open() as db:
        busy = db.input("busy", k=int, v=int)
        by_key = busy.arrange("k")
        busy.insert(np.stack([np.arange(1000), np.arange(1000)], axis=1))
        asked = db.input("asked", k=int)
        asked.insert([(5,)])
        answer = by_key.join(asked, on="k").output("answer")
        db.advance()
        (join,) = [operator for operator in answer.dataflow.operators if isinstance(operator, Join)]
        assert join._routed is not None
        for key in range(100, 200):
            busy.insert([(key, 0)])
            db.advance()
        spine = by_key.installed.publisher.spine()
        while db.idle():
            pass
        assert spine.batch_count <= 3
        asked.insert([(150,)])
        db.advance()
        assert sorted(answer.rows()) == [(5, 5), (150, 0), (150, 150)]

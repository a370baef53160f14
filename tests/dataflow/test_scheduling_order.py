"""Operators are stepped in an order in which all inputs of an advance arrive together."""

import kpg
from kpg.operators.join import Join


def test_a_dataflow_runs_before_its_readers_even_if_it_was_created_later(monkeypatch):
    """A join is stepped once in an advance that changes both of its inputs, one of them arranged only for it."""
    stepped = []
    plain = Join.step

    def step(self, inputs):
        stepped.append([len(messages) for messages in inputs])
        return plain(self, inputs)

    monkeypatch.setattr(Join, "step", step)
    with kpg.open() as db:
        left, right = db.input("left", k=int, v=int), db.input("right", k=int, w=int)
        left.arrange("k")
        answer = left.join(right, on="k").output("answer")
        for n in range(3):
            left.insert([(n, 1)])
            right.insert([(n, 2)])
            db.advance()
        assert stepped == [[1, 1]] * 3
        assert answer.rows() == [(n, 1, 2) for n in range(3)]

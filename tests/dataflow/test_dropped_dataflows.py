"""Dropped dataflows: reference counts free their operators, without a garbage collection."""

import gc
import weakref

import pytest

import kpg


@pytest.mark.parametrize("keep", [True, False])
def test_the_operators_of_a_released_answer_are_freed_without_a_collection(keep):
    with kpg.open() as db:
        edges = db.input("edges", src=int, dst=int)
        nodes = edges.select(node="src")
        for _ in range(3):
            nodes = edges.join(nodes, on={"src": "node"}).select(node="dst").distinct()
        loop = nodes.iterate(
            lambda seen: edges.join(seen, on={"src": "node"}).select(node="dst").concat(seen).distinct()
        )
        answer = loop.concat(nodes).count("node").output(keep=keep)
        edges.insert([(0, 1), (1, 2), (2, 0)])
        db.advance()
        operators = [weakref.ref(operator) for operator in answer.dataflow.operators]
        while db.idle():
            pass
        gc.disable()
        try:
            answer.release()
            edges.insert([(3, 4)])
            db.advance()  # the worker remembers the operator that it stepped last
            left = [operator().name for operator in operators if operator() is not None]
        finally:
            gc.enable()
        assert len(operators) > 10 and len(left) <= 2, left  # the handle refers to the last ones

"""How the algorithms meet the rest: indexes are shared, other types of nodes work, mistakes are refused."""

import pytest

import kpg
from kpg import BadPlan, TooManyRounds, TypeMismatch, col, graphs


def test_queries_share_one_index_of_the_edges():
    with kpg.open() as db:
        edges, roots = db.input("edges", src=int, dst=int), db.input("roots", node=int)
        by_src = edges.arrange("src")
        graphs.reach(by_src, roots).output("near")
        graphs.bfs(edges, roots).output("far")
        graphs.wcc(edges).output("whole")
        assert by_src.installed.readers() == ["near", "far", "whole"]


def test_a_relation_without_an_index_keeps_one_by_src():
    with kpg.open() as db:
        edges, roots = db.input("edges", src=int, dst=int), db.input("roots", node=int)
        graphs.reach(edges, roots).output("near")
        assert edges.base().keys == ("src",)


def test_an_algorithm_is_released_with_its_answer():
    with kpg.open() as db:
        edges, roots = db.input("edges", src=int, dst=int), db.input("roots", node=int)
        edges.insert([(0, 1), (1, 2), (2, 0)])
        with graphs.scc(edges).nodes.output("answer") as answer:
            db.advance()
            assert answer.rows() == [(0, 0), (1, 0), (2, 0)]
        assert edges.base().readers() == []
        roots.drop()
        edges.drop()


def test_an_algorithm_starts_on_what_is_there():
    with kpg.open() as db:
        edges, roots = db.input("edges", src=int, dst=int), db.input("roots", node=int)
        edges.insert([(0, 1), (1, 2)])
        roots.insert([(0,)])
        db.advance()
        assert graphs.bfs(edges, roots).output("far").rows() == [(0, 0), (1, 1), (2, 2)]


def test_an_answer_is_a_collection_like_any_other():
    with kpg.open() as db:
        edges = db.input("edges", src=int, dst=int)
        components = graphs.scc(edges)
        sizes = components.nodes.group_by("component").count("size").filter(col("size") > 1)
        both = sizes.join(components.edges, on={"component": "src"}).output("both")
        edges.insert([(1, 2), (2, 1), (2, 3)])
        db.advance()
        assert both.rows() == [(1, 2, 1, 2)]


def test_nodes_may_be_words_where_nothing_orders_them():
    with kpg.open() as db:
        edges, roots = db.input("edges", src=str, dst=str, weight=int), db.input("roots", start=str)
        answers = {
            "reach": graphs.reach(edges, roots).output("reach"),
            "bfs": graphs.bfs(edges, roots).output("bfs"),
            "sssp": graphs.sssp(edges, roots).output("sssp"),
            "k-core": graphs.k_core(edges, 2).output("k-core"),
            "pagerank": graphs.pagerank(edges, 0).output("pagerank"),
        }
        edges.insert([("a", "b", 5), ("a", "c", 1), ("c", "b", 1), ("x", "a", 1)])
        roots.insert([("a",)])
        db.advance()
        assert {name: sorted(answer.rows()) for name, answer in answers.items()} == {
            "reach": [("a",), ("b",), ("c",)],
            "bfs": [("a", 0), ("b", 1), ("c", 1)],
            "sssp": [("a", 0), ("b", 2), ("c", 1)],
            "k-core": [("a",), ("b",), ("c",)],
            "pagerank": [(node, 1_000_000) for node in "abcx"],
        }


def test_a_cycle_of_negative_weight_is_stopped():
    with kpg.open(max_rounds=50) as db:
        edges, roots = db.input("edges", src=int, dst=int, weight=int), db.input("roots", node=int)
        answer = graphs.sssp(edges, roots).output("answer")
        edges.insert([(0, 1, -1), (1, 0, 0)])
        roots.insert([(0,)])
        with pytest.raises(TooManyRounds):
            db.advance()
            answer.rows()


def test_mistakes_are_refused_before_anything_runs():
    with kpg.open() as db:
        edges, roots = db.input("edges", src=int, dst=int), db.input("roots", node=int)
        mixed = db.input("mixed", src=int, dst=str)
        with pytest.raises(TypeMismatch):
            graphs.reach(mixed, roots)
        with pytest.raises(TypeMismatch):
            graphs.reach(edges, edges)
        with pytest.raises(TypeMismatch):
            graphs.bfs(edges, db.input("words", node=str))
        with pytest.raises(BadPlan):
            graphs.k_core(edges, 0)
        for rounds in (-1, 1_000):
            with pytest.raises(BadPlan):
                graphs.pagerank(edges, rounds)

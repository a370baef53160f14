"""Explanations as drawings: every box and edge is there, data flows down, and boxes do not overlap."""

import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg.api.explanation import ExplainedGraph, Explanation, GraphBox
from kpg.notebook.graph_drawing import MAX_BOXES, draw
from kpg.notebook.layered_layout import layered_layout

SVG = "{http://www.w3.org/2000/svg}"


@st.composite
def graphs(draw: Any) -> tuple[list[tuple[float, float]], list[tuple[int, int]]]:
    count = draw(st.integers(1, 12))
    sizes = draw(st.lists(st.tuples(st.floats(10, 200), st.floats(10, 80)), min_size=count, max_size=count))
    boxes = st.integers(0, count - 1)
    return sizes, draw(st.lists(st.tuples(boxes, boxes), max_size=25, unique=True))


@given(graphs())
def test_edges_go_down_unless_they_close_a_loop_and_boxes_are_apart(graph: Any) -> None:
    sizes, edges = graph
    layout = layered_layout(sizes, edges)
    for edge in edges:
        if edge in layout.paths and edge not in layout.backward:
            heights = [y for _, y in layout.paths[edge]]
            assert heights == sorted(heights)
    assert {edge for edge in edges if edge[0] != edge[1]} == layout.paths.keys()
    for box, (left, top) in enumerate(layout.places):
        width, height = sizes[box]
        assert left >= -0.01 and left + width <= layout.width + 0.01 and top + height <= layout.height + 0.01
        for other, (other_left, other_top) in enumerate(layout.places[:box]):
            other_width, other_height = sizes[other]
            apart = left + width <= other_left + 0.01 or other_left + other_width <= left + 0.01
            assert apart or top + height <= other_top + 0.01 or other_top + other_height <= top + 0.01


@given(graphs())
def test_only_edges_of_cycles_go_up(graph: Any) -> None:
    sizes, edges = graph
    layout = layered_layout(sizes, edges)
    down = [edge for edge in edges if edge not in layout.backward]
    ready = set(range(len(sizes)))
    while ready and (removed := {box for box in ready if not any(s in ready and t == box for s, t in down)}):
        ready -= removed
    assert not ready  # what goes down has no cycle
    if all(source < target for source, target in edges):
        assert not layout.backward


@pytest.mark.parametrize("options", [{}, {"background": True}, {"workers": 2}], ids=str)
def test_an_explanation_prints_as_text_and_is_drawn_in_a_notebook(options: dict[str, Any]) -> None:
    with kpg.open(**options) as db:
        edges = db.input("edges", src=int, dst=int)
        by_src = edges.arrange("src")
        reach = edges.iterate(
            lambda r: (
                r.join(by_src, on={"dst": "src"}).select("src", dst="dst_right").consolidate().concat(edges).distinct()
            )
        )
        answer = reach.output("reach <&>")
        db.advance()
        for explanation in (answer.explain(), db.explain()):
            assert isinstance(explanation, str) and "edges by src" in explanation
            bundle = explanation._repr_mimebundle_()
            assert bundle["text/plain"] == str(explanation)
            drawing = ElementTree.fromstring(bundle["image/svg+xml"])
            assert len(drawing.findall(f"{SVG}g")) == len(explanation.graph.boxes)
            assert "reach <&>" in "".join(drawing.itertext())
        loop = ElementTree.fromstring(answer.explain()._repr_mimebundle_()["image/svg+xml"])
        assert any("stroke-dasharray" in path.attrib for path in loop.findall(f"{SVG}path"))


def test_ipython_shows_the_text_of_an_explanation_as_it_is() -> None:
    from IPython.lib.pretty import pretty

    assert pretty(Explanation("two\nlines", ExplainedGraph((), ()))) == "two\nlines"


def test_a_graph_that_is_too_large_is_not_drawn() -> None:
    boxes = tuple(GraphBox((f"box {number}",)) for number in range(MAX_BOXES + 1))
    assert draw(ExplainedGraph(boxes, ())) is None
    assert draw(ExplainedGraph((), ())) is None
    graph = ExplainedGraph(boxes[:3], ((0, 1), (1, 2), (2, 0)))
    assert ExplainedGraph.from_json(graph.to_json()) == graph

"""Fewer edges with the same connected components, for several workers that have a part of the edges each."""

from __future__ import annotations

from kpg.api.collection import Collection
from kpg.columns.schema import INT64
from kpg.plan.nodes import WorkerComponentsNode


def within_workers(edges: Collection) -> Collection:
    """Return edges (src, dst) with the same components: on several workers, those of a forest on each of them.

    On one worker, inside loops, for times of several coordinates, and for nodes that are no integers, return the edges.
    """
    node, db = edges.node, edges.db
    if db.is_single_worker or node.loops or db.config.coordinates > 1 or not edges.schema.type_of("src").same(INT64):
        return edges
    return Collection(db, WorkerComponentsNode(edges.schema.select(["src", "dst"]), frozenset(), node))

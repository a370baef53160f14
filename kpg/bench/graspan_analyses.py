"""Graspan's analyses on collections: the Datalog programs of `kpg/bench/programs`, in Python.

    flows(null, assign)                     (node, source): a null of the source reaches the node
    points_to(assign, deref)                as Graspan states it, with value aliases as a relation
    points_to_optimised(assign, deref)      dereferences restrict value flows before they are paired
    points_to_optimised(..., share=False)   the same, each reader with an index of its own

The points-to analyses are pairs of collections (x, y): value flows and memory aliases. They run in the recursion
operator, which keeps the indexes that it needs. With `as_loop=True` they are loops, whose indexes readers may share.
"""

from __future__ import annotations

from collections.abc import Callable

from kpg.api.collection import Collection
from kpg.columns.functions import col

Pair = tuple[Collection, Collection]


def flows(null: Collection, assign: Collection) -> Collection:
    """Return which null assignments reach which nodes."""
    with null.db.loop("flows") as loop:
        derived = loop.variable(node=int, source=int)
        reached = derived.concat(null.select(node=col("y"), source=col("x"))).distinct()
        derived.set(reached.join(assign, on={"node": "x"}).select(node=col("y"), source=col("source")))
        return loop.leave(reached)


def points_to(assign: Collection, deref: Collection, as_loop: bool = False) -> Pair:
    """Return value flows and memory aliases, by way of value aliases."""
    with assign.db.loop("points to") as loop:
        flow, alias = loop.variable(x=int, y=int), loop.variable(x=int, y=int)
        value_flow, memory_alias = initial_flows(flow, assign, deref), kept(alias, as_loop).distinct()
        flow.set(flow_onward(value_flow, memory_alias, assign, shared))
        direct = value_flow.join(value_flow, on="x").select(x=col("y"), y=col("y_right"))
        half = value_flow.join(memory_alias, on="x").select(x=col("y"), w=col("y_right"))
        value_alias = direct.concat(aliased(half, value_flow)).distinct()
        pointed = deref.join(value_alias, on="x").select(x=col("y"), w=col("y_right"))
        alias.set(aliased(pointed, deref))
        return loop.leave(value_flow), loop.leave(memory_alias)


def points_to_optimised(assign: Collection, deref: Collection, share: bool = True, as_loop: bool = False) -> Pair:
    """Return the same without a relation of value aliases: only dereferenced values are paired."""
    use = shared if share else private
    with assign.db.loop("points to") as loop:
        flow, alias = loop.variable(x=int, y=int), loop.variable(x=int, y=int)
        value_flow, memory_alias = initial_flows(flow, assign, deref), kept(alias, as_loop).distinct()
        flow.set(flow_onward(value_flow, memory_alias, assign, use))
        pointed = use(value_flow).join(use(deref), on={"y": "x"}).select(x=col("x"), y=col("y_right")).distinct()
        direct = use(pointed).join(use(pointed), on="x").select(x=col("y"), y=col("y_right"))
        half = use(pointed).join(use(memory_alias), on="x").select(x=col("y"), w=col("y_right"))
        alias.set(direct.concat(aliased(half, use(pointed))))
        return loop.leave(value_flow), loop.leave(memory_alias)


def aliased(half: Collection, other: Collection) -> Collection:
    """Return pairs (x, y) of  half(x, w), other(w, y)."""
    return half.select(u=col("x"), w=col("w")).join(other, on={"w": "x"}).select(x=col("u"), y=col("y"))


def flow_onward(
    value_flow: Collection, memory_alias: Collection, assign: Collection, use: Callable[[Collection], Collection]
) -> Collection:
    """Return two value flows in sequence, and an assignment followed by an alias of its target."""
    through = use(assign).join(use(memory_alias), on={"y": "x"}).select(x=col("x"), y=col("y_right"))
    further = use(value_flow).join(use(value_flow), on={"y": "x"}).select(x=col("x"), y=col("y_right"))
    return through.concat(further)


def initial_flows(derived: Collection, assign: Collection, deref: Collection) -> Collection:
    """Return the derived flows, the assignments, and every node with itself; each once."""
    ends = [edges.select(x=col(side), y=col(side)) for edges in (assign, deref) for side in ("x", "y")]
    return derived.concat(assign.concat(*ends).distinct()).distinct()


def kept(variable: Collection, as_loop: bool) -> Collection:
    """Return a variable; with a consolidation behind it, the loop is not replaced by the recursion operator."""
    return variable.consolidate() if as_loop else variable


def shared(collection: Collection) -> Collection:
    """Return the collection itself, so readers share its index."""
    return collection


def private(collection: Collection) -> Collection:
    """Return another collection with the same rows, so its reader shares no index."""
    return collection.select(y=col("y"), x=col("x"))

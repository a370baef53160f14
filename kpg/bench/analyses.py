"""Graspan's analyses on collections: what the Datalog programs of `kpg/bench/programs` say, in Python.

    flows(null, assign)                     (node, source): the null of a source reaches a node
    points_to(assign, deref)                as it is written down, with value aliases as a relation
    points_to_optimised(assign, deref)      dereferences restrict value flows before they are paired
    points_to_optimised(..., share=False)   the same, each reader with an index of its own

The points-to analyses are pairs of collections (x, y): value flows and memory aliases.
"""

from __future__ import annotations

from collections.abc import Callable

from kpg.api.collection import Collection
from kpg.columns.functions import col

Pair = tuple[Collection, Collection]


def flows(null: Collection, assign: Collection) -> Collection:
    """Which null assignments reach which nodes."""
    with null.db.loop("flows") as loop:
        found = loop.variable(node=int, source=int)
        reached = found.concat(null.select(node=col("y"), source=col("x"))).distinct()
        found.set(reached.join(assign, on={"node": "x"}).select(node=col("y"), source=col("source")))
        return loop.leave(reached)


def points_to(assign: Collection, deref: Collection) -> Pair:
    """Value flows and memory aliases, by way of value aliases."""
    with assign.db.loop("points to") as loop:
        flow, alias = loop.variable(x=int, y=int), loop.variable(x=int, y=int)
        value_flow, memory_alias = begun(flow, assign, deref), alias.distinct()
        flow.set(flow_onward(value_flow, memory_alias, assign, shared))
        one = value_flow.join(value_flow, on="x").select(x=col("y"), y=col("y_right"))
        half = value_flow.join(memory_alias, on="x").select(x=col("y"), w=col("y_right"))
        value_alias = one.concat(aliased(half, value_flow)).distinct()
        pointed = deref.join(value_alias, on="x").select(x=col("y"), w=col("y_right"))
        alias.set(aliased(pointed, deref))
        return loop.leave(value_flow), loop.leave(memory_alias)


def points_to_optimised(assign: Collection, deref: Collection, share: bool = True) -> Pair:
    """The same, without value aliases: they are paired only where both sides are dereferenced."""
    use = shared if share else private
    with assign.db.loop("points to") as loop:
        flow, alias = loop.variable(x=int, y=int), loop.variable(x=int, y=int)
        value_flow, memory_alias = begun(flow, assign, deref), alias.distinct()
        flow.set(flow_onward(value_flow, memory_alias, assign, use))
        pointed = use(value_flow).join(use(deref), on={"y": "x"}).select(x=col("x"), y=col("y_right")).distinct()
        one = use(pointed).join(use(pointed), on="x").select(x=col("y"), y=col("y_right"))
        half = use(pointed).join(use(memory_alias), on="x").select(x=col("y"), w=col("y_right"))
        alias.set(one.concat(aliased(half, use(pointed))))
        return loop.leave(value_flow), loop.leave(memory_alias)


def aliased(half: Collection, other: Collection) -> Collection:
    """Pairs (x, y) of  half(x, w), other(w, y)."""
    return half.select(u=col("x"), w=col("w")).join(other, on={"w": "x"}).select(x=col("u"), y=col("y"))


def flow_onward(
    value_flow: Collection, memory_alias: Collection, assign: Collection, use: Callable[[Collection], Collection]
) -> Collection:
    """Value flows one after the other; and an assignment, then an alias of where it leads."""
    through = use(assign).join(use(memory_alias), on={"y": "x"}).select(x=col("x"), y=col("y_right"))
    further = use(value_flow).join(use(value_flow), on={"y": "x"}).select(x=col("x"), y=col("y_right"))
    return through.concat(further)


def begun(found: Collection, assign: Collection, deref: Collection) -> Collection:
    """What was found, the assignments, and every node with itself; each once."""
    ends = [each.select(x=col(side), y=col(side)) for each in (assign, deref) for side in ("x", "y")]
    return found.concat(assign.concat(*ends).distinct()).distinct()


def shared(collection: Collection) -> Collection:
    """The collection itself, so that readers find the index that is there."""
    return collection


def private(collection: Collection) -> Collection:
    """Another collection with the same rows, in no order, so that nobody has an index in common with its reader."""
    return collection.select(y=col("y"), x=col("x"))

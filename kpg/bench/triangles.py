"""Triangles (a, b), (b, c), (a, c) of a graph whose edges come in the order of their first node, in several ways.

Two at a time in three orders, written as collections so that nobody reorders them, and by Hector, one variable at a
time. A way that takes too long, or too much memory, is stopped where it is: as far as it came counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kpg.api.collection import Collection
from kpg.api.contracts import Database, Input, Output
from kpg.bench.answers import matrix
from kpg.bench.data.graphs import Ints
from kpg.bench.joins import Joined, rule
from kpg.bench.run import Run
from kpg.columns.functions import col
from kpg.errors import OverBudget
from kpg.opening import open as open_database

TRIANGLE = rule([("e", "a b"), ("e", "b c"), ("e", "a c")], "a b c")


@dataclass(frozen=True, slots=True)
class Played:
    """Seconds of each round that was played to its end, and why that were not all, if so."""

    seconds: list[float]
    rounds: int
    ended: str
    spent: float  # seconds in all, with a round that was not played to its end


def ab_ac(e: Collection) -> Collection:
    """((a, b) with (a, c)) with (b, c)"""
    pairs = e.join(e, on="src").select(b=col("dst"), c=col("dst_right"))
    return pairs.join(e, on={"b": "src", "c": "dst"}).select("b", "c")


def ab_bc(e: Collection) -> Collection:
    """((a, b) with (b, c)) with (a, c)"""
    pairs = e.select(a=col("src"), b=col("dst")).join(e, on={"b": "src"}).select(a=col("a"), c=col("dst"))
    return pairs.join(e, on={"a": "src", "c": "dst"}).select("a", "c")


def ac_bc(e: Collection) -> Collection:
    """((a, c) with (b, c)) with (a, b)"""
    pairs = e.join(e, on="dst").select(a=col("src"), b=col("src_right"))
    return pairs.join(e, on={"a": "src", "b": "dst"}).select("a", "b")


BINARY: dict[str, Callable[[Collection], Collection]] = {
    "two at a time, (ab ac) bc": ab_ac,
    "two at a time, (ab bc) ac": ab_bc,
    "two at a time, (ac bc) ab": ac_bc,
}
HECTOR = {"Hector, a b c": "hector a b c", "Hector, c b a": "hector c b a"}


def rounds_of(edges: Ints, nodes_a_round: int) -> list[Ints]:
    """Edges in the order of their first node, so many nodes a round."""
    ordered = edges[np.lexsort((edges[:, 1], edges[:, 0]))]
    last = int(ordered[-1, 0]) + 1 if len(ordered) else 0
    cuts = np.searchsorted(ordered[:, 0], np.arange(0, last + nodes_a_round, nodes_a_round))
    return [ordered[a:b] for a, b in zip(cuts[:-1], cuts[1:], strict=True) if b > a]


def play(run: Run, way: str, rounds: Sequence[Ints], patience: float, limit: int) -> Played:
    """Count triangles while edges come; the count is checked if all came."""
    seconds: list[float] = []
    spent, ended = 0.0, ""
    with open_database(memory_limit=limit) as db:
        relation, output = installed(db, way)
        try:
            for number, edges in enumerate(rounds):
                run.say(way, number, len(rounds))
                if spent > patience:
                    ended = f"stopped after {patience:g} s"
                    break
                start = time.perf_counter()
                try:
                    relation.insert(edges)
                    db.advance()
                finally:
                    spent += time.perf_counter() - start
                seconds.append(time.perf_counter() - start)
        except OverBudget:
            ended = "out of memory"
        if not ended:
            found = [number for (number,) in output.rows()]
            run.check(sum(found) == counted(np.concatenate(rounds)), f"the triangles, {way}")
    return Played(seconds, len(rounds), ended, spent)


def installed(db: Database, way: str) -> tuple[Input, Output]:
    """Where edges go in, and how many triangles there are."""
    if way in HECTOR:
        joined = Joined(db, TRIANGLE, HECTOR[way], count=True)
        return joined.inputs["e"], joined.output
    edges = db.input("e", src=int, dst=int)
    return edges, BINARY[way](edges).count().output("triangles")


def counted(edges: Ints) -> int:
    """How many triangles there are, by sparse matrices."""
    nodes = int(edges.max()) + 1
    a = matrix(edges, nodes)
    return int(round((a @ a).multiply(a).sum()))

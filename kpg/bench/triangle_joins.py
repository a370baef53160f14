"""Triangles (a, b), (b, c), (a, c) of a graph, by several joins. Edges arrive in the order of their first node.

Binary joins in three orders, written as collections so that no planner reorders them, and Hector, one variable at a
time. A join that takes too long, or too much memory, is stopped; it counts with the rounds until then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kpg.api.collection import Collection
from kpg.api.contracts import Database, Input, Output
from kpg.bench.data.graphs import Ints
from kpg.bench.join_rules import InstalledJoin, rule
from kpg.bench.reference_answers import matrix
from kpg.bench.run import Run
from kpg.columns.functions import col
from kpg.errors import OverBudget
from kpg.opening import open as open_database

TRIANGLE = rule([("e", "a b"), ("e", "b c"), ("e", "a c")], "a b c")


@dataclass(frozen=True, slots=True)
class TriangleRounds:
    """The seconds of each completed round, and why the join was stopped, if it was."""

    seconds: list[float]
    rounds: int
    ended: str
    spent: float  # seconds in all, with an incomplete round


def ab_ac(e: Collection) -> Collection:
    """Join ((a, b) with (a, c)) with (b, c)."""
    pairs = e.join(e, on="src").select(b=col("dst"), c=col("dst_right"))
    return pairs.join(e, on={"b": "src", "c": "dst"}).select("b", "c")


def ab_bc(e: Collection) -> Collection:
    """Join ((a, b) with (b, c)) with (a, c)."""
    pairs = e.select(a=col("src"), b=col("dst")).join(e, on={"b": "src"}).select(a=col("a"), c=col("dst"))
    return pairs.join(e, on={"a": "src", "c": "dst"}).select("a", "c")


def ac_bc(e: Collection) -> Collection:
    """Join ((a, c) with (b, c)) with (a, b)."""
    pairs = e.join(e, on="dst").select(a=col("src"), b=col("src_right"))
    return pairs.join(e, on={"a": "src", "b": "dst"}).select("a", "b")


BINARY: dict[str, Callable[[Collection], Collection]] = {
    "binary, (ab ac) bc": ab_ac,
    "binary, (ab bc) ac": ab_bc,
    "binary, (ac bc) ab": ac_bc,
}
HECTOR = {"Hector, a b c": "hector a b c", "Hector, c b a": "hector c b a"}


def rounds_of(edges: Ints, nodes_per_round: int) -> list[Ints]:
    """Divide edges, in the order of their first node, into rounds of some nodes."""
    ordered = edges[np.lexsort((edges[:, 1], edges[:, 0]))]
    last = int(ordered[-1, 0]) + 1 if len(ordered) else 0
    cuts = np.searchsorted(ordered[:, 0], np.arange(0, last + nodes_per_round, nodes_per_round))
    return [ordered[a:b] for a, b in zip(cuts[:-1], cuts[1:], strict=True) if b > a]


def play(run: Run, way: str, rounds: Sequence[Ints], limit_seconds: float, limit_bytes: int) -> TriangleRounds:
    """Count triangles while edges arrive, and check the count unless the join was stopped."""
    seconds: list[float] = []
    spent, ended = 0.0, ""
    with open_database(memory_limit=limit_bytes) as db:
        relation, output = installed(db, way)
        try:
            for number, edges in enumerate(rounds):
                run.progress(way, number, len(rounds))
                if spent > limit_seconds:
                    ended = f"stopped after {limit_seconds:g} s"
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
            counts = [number for (number,) in output.rows()]
            run.check(sum(counts) == triangle_count(np.concatenate(rounds)), f"the triangles, {way}")
    return TriangleRounds(seconds, len(rounds), ended, spent)


def installed(db: Database, way: str) -> tuple[Input, Output]:
    """Install a join; return the input of edges, and the output of the number of triangles."""
    if way in HECTOR:
        joined = InstalledJoin(db, TRIANGLE, HECTOR[way], count=True)
        return joined.inputs["e"], joined.output
    edges = db.input("e", src=int, dst=int)
    return edges, BINARY[way](edges).count().output("triangles")


def triangle_count(edges: Ints) -> int:
    """Return the number of triangles, by sparse matrices."""
    nodes = int(edges.max()) + 1
    adjacency = matrix(edges, nodes)
    return int(round((adjacency @ adjacency).multiply(adjacency).sum()))

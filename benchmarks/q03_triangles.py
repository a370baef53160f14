"""Q3: how long do directed triangles take, by Hector and by binary joins, whatever the order of the clauses?

On random edges (100k nodes, 1M edges), on an RMAT graph of that size and on the star 0→i, i→0, i→i+1, where joins of
two pair the square of its rays. The clock includes arranging the edges; every triangle is kept. DuckDB counts them in
the same run, where it can: on the star it is quadratic, so that the number is known instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import kpg
from benchmarks import data, peers_duckdb
from benchmarks.lines import Reference, Run, at_most
from benchmarks.measure import Clock, cpu_clock, wall_clock
from kpg.query.datalog import parse
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile

DECLARED = """
.decl e(x: number, y: number)
.input e
.decl answer(a: number, b: number, c: number)
.output answer
"""
ORDERS = ("e(a, b), e(b, c), e(c, a)", "e(b, c), e(a, b), e(c, a)", "e(c, a), e(b, c), e(a, b)")
SQL = """
    SELECT count(*) AS n FROM edges x JOIN edges y ON x.dst = y.src JOIN edges z ON y.dst = z.src AND z.dst = x.src"""
MOST_PATHS = 500_000_000  # paths of two edges beyond which binary joins and DuckDB are not asked


@dataclass(frozen=True)
class Graph:
    """Edges, and how many triangles they have, if that is known."""

    name: str
    edges: data.Ints
    triangles: int | None = None

    @property
    def paths(self) -> int:
        """How many pairs of edges follow each other."""
        nodes = int(self.edges.max()) + 1
        into, out = (np.bincount(self.edges[:, end], minlength=nodes) for end in (1, 0))
        return int(into @ out)


def run(run: Run) -> None:
    """Three graphs, the star at two sizes."""
    nodes, edges, rays = run.size(100_000), run.size(1_000_000), run.size(1_000_000)
    triangles(run, Graph("random", np.unique(data.digraph(nodes, edges), axis=0)), 3)
    triangles(run, Graph("RMAT", rmat(max(4, int(np.log2(nodes)) + 1), edges)), None)
    tenth = max(4, rays // 10)
    small = min(answer(run, star(tenth), order, "hector") for order in ORDERS)
    seconds = [answer(run, star(rays), order, "hector") for order in ORDERS]
    run.report(
        "star, Hector", "at most 8 s, at most 12 times a tenth of it; order of clauses at most 2 times",
        [at_most("seconds", 8), at_most("growth", 12), at_most("order_times", 2)],
        rows=star(rays).triangles, seconds=max(seconds), growth=min(seconds) / small,
        order_times=max(seconds) / min(seconds),
    )  # fmt: skip


def triangles(run: Run, graph: Graph, most: float | None) -> None:
    """Both ways to join in three orders of clauses, and one edge that goes and comes back."""
    few = graph.paths <= MOST_PATHS
    reference = None
    if few:
        _, seconds, table = peers_duckdb.measured(SQL, edges=graph.edges)
        graph = Graph(graph.name, graph.edges, int(table["n"].to_numpy()[0]))
        reference = Reference(peers_duckdb.NAME, seconds)
    for joins in ("hector", "binary"):
        if joins == "binary" and not few:
            continue
        found = [answer(run, graph, order, joins) for order in ORDERS]
        bars = [at_most("order_times", 2)] if joins == "hector" else []
        bars += [at_most("ratio", most)] if joins == "hector" and most is not None and few else []
        bar = "at most 3 times DuckDB; order of clauses at most 2 times" if len(bars) > 1 else None
        bar = bar or ("order of clauses at most 2 times" if bars else None)
        run.report(
            f"{graph.name}, {joins}", bar, bars, reference, rows=len(graph.edges), seconds=max(found),
            order_times=max(found) / min(found), triangles=graph.triangles,
        )  # fmt: skip
    run.report(f"{graph.name}, 1 edge, hector", None, [], None, latency=live(run, graph), rows=1)


def answer(run: Run, graph: Graph, order: str, joins: str) -> float:
    """CPU seconds to the first answer."""
    program = compile(parse(f"{DECLARED}answer(a, b, c) :- {order}."))
    clock = cpu_clock(f"{graph.name}, {joins}")
    for _ in range(run.times(2)):
        with kpg.open() as db, InstalledProgram(db, program, distinct_inputs=False, joins=joins) as running:
            with clock:
                running.inputs["e"].insert(graph.edges)
                db.advance()
            found = running.answer("answer").scan().num_rows
            assert graph.triangles in (None, found), f"{found} triangles, not {graph.triangles}"
    return clock.least


def live(run: Run, graph: Graph) -> Clock:
    """How long one edge takes that goes and comes back."""
    program = compile(parse(f"{DECLARED}answer(a, b, c) :- {ORDERS[0]}."))
    clock = wall_clock(f"{graph.name}, 1 edge")
    with kpg.open() as db, InstalledProgram(db, program, distinct_inputs=False, joins="hector") as running:
        running.inputs["e"].insert(graph.edges)
        db.advance()
        before = running.answer("answer").scan().num_rows
        for place in np.random.default_rng(3).permutation(len(graph.edges))[: run.times(100)]:
            for change in (running.inputs["e"].remove, running.inputs["e"].insert):
                change(graph.edges[place : place + 1])
                with clock:
                    db.advance()
        assert running.answer("answer").scan().num_rows == before
    return clock


def star(rays: int) -> Graph:
    """0→i, i→0, i→i+1: three triangles, one in each rotation, for each but the last."""
    ends = np.arange(1, rays + 1)
    hub = np.zeros_like(ends)
    parts = [(hub, ends), (ends, hub), (ends[:-1], ends[1:])]
    return Graph("star", np.concatenate([np.stack(part, axis=1) for part in parts]), 3 * (rays - 1))


def rmat(levels: int, edges: int) -> data.Ints:
    """A skewed graph of 2^levels nodes: each edge chooses a quarter of the matrix with 57, 19, 19, 5 percent, again."""
    random = np.random.default_rng(5)
    found = np.zeros((edges, 2), np.int64)
    for _ in range(levels):
        quarter = random.choice(4, edges, p=(0.57, 0.19, 0.19, 0.05))
        found = 2 * found + np.stack([quarter // 2, quarter % 2], axis=1)
    return np.unique(found, axis=0)

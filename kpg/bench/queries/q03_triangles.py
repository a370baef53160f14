"""Q3: how long do directed triangles take, by Hector and by binary joins, in any order of the clauses?

On random edges (100k nodes, 1M edges), on an RMAT graph of that size and on the star 0→i, i→0, i→i+1, where binary
joins pair the square of its rays. The clock includes arranging the edges; every triangle is kept. DuckDB counts them in
the same run, where it can: on the star it is quadratic, and the number is known. One edge is also removed and inserted
again; that latency runs from before the change is inserted until the changes of the answer are in hand.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

import kpg
from kpg.bench.data.graphs import Ints, random_graph, rmat_in_order, star
from kpg.bench.experiment import Limit, at_most, engine_experiment
from kpg.bench.measure import Stopwatch, cpu_stopwatch, wall_stopwatch
from kpg.bench.output_values import columns
from kpg.bench.peers import duckdb_recompute
from kpg.bench.reference_answers import matrix
from kpg.bench.run import Reference, Run
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
MAX_PATHS = 500_000_000  # paths of two edges; with more, DuckDB would take minutes
MAX_KEPT_PATHS = 100_000_000  # that binary joins sort: 236M paths of RMAT need more than 20 GB
MAX_MATRIX_PATHS = 5_000_000  # with more, sparse matrices need too much memory
REPEATS = 2
CHANGED_EDGES = 100


@dataclass(frozen=True)
class TriangleGraph:
    """Edges, and their number of directed triangles if that is known."""

    name: str
    edges: Ints
    triangles: int | None = None

    @property
    def paths(self) -> int:
        """The number of pairs of edges that follow each other."""
        nodes = int(self.edges.max()) + 1
        into, out = (np.bincount(self.edges[:, end], minlength=nodes) for end in (1, 0))
        return int(into @ out)


def run(run: Run) -> None:
    """Measure three graphs, the star at two sizes."""
    nodes, edges, rays = run.size(100_000), run.size(1_000_000), run.size(1_000_000)
    measure(run, TriangleGraph("random", np.unique(random_graph(nodes, edges, 3), axis=0)), 3)
    measure(run, TriangleGraph("RMAT", rmat_in_order(max(4, int(np.log2(nodes)) + 1), edges)), None)
    small, large = (TriangleGraph("star", star(count), 3 * (count - 1)) for count in (max(4, rays // 10), rays))
    tenth = min(answer(run, small, order, "hector") for order in ORDERS)
    seconds = [answer(run, large, order, "hector") for order in ORDERS]
    run.report(
        "star, Hector", "at most 8 s, at most 12 times a tenth of it; order of clauses at most 2 times",
        [at_most("seconds", 8), at_most("growth", 12), at_most("order_times", 2)],
        rows=large.triangles, seconds=max(seconds), growth=min(seconds) / tenth,
        order_times=max(seconds) / min(seconds),
    )  # fmt: skip


def measure(run: Run, graph: TriangleGraph, duckdb_times: float | None) -> None:
    """Measure both joins in three orders of clauses, and one edge that is removed and inserted again."""
    has_few_paths = graph.paths <= MAX_PATHS
    if graph.paths <= MAX_MATRIX_PATHS:
        graph = replace(graph, triangles=triangles(graph.edges))
    reference = None
    duckdb = (
        run.ask("duckdb", lambda: duckdb_recompute.measured(SQL, {"edges": graph.edges})) if has_few_paths else None
    )
    if duckdb is not None:
        (count,) = duckdb[2]["n"].to_pylist()
        run.check(graph.triangles in (None, count), f"DuckDB has the same number of triangles on {graph.name}")
        graph = replace(graph, triangles=count)
        reference = Reference(duckdb_recompute.name(), duckdb[1])
    for joins in ("hector", "binary") if graph.paths <= MAX_KEPT_PATHS else ("hector",):
        seconds = [answer(run, graph, order, joins) for order in ORDERS]
        bar, limits = bars(joins, duckdb_times if has_few_paths else None)
        run.report(
            f"{graph.name}, {joins}", bar, limits, reference, rows=len(graph.edges), seconds=max(seconds),
            order_times=max(seconds) / min(seconds), triangles=graph.triangles,
        )  # fmt: skip
    bar, limits = "p50 at most 0.15 ms", [at_most("p50_ms", 0.15)]
    run.report(f"{graph.name}, 1 edge, hector", bar, limits, None, latency=change_edges(run, graph), rows=1)


def bars(joins: str, duckdb_times: float | None) -> tuple[str | None, list[Limit]]:
    """Return the bar of a row in words, and its limits; binary joins have none."""
    if joins != "hector":
        return None, []
    orders = at_most("order_times", 2)
    if duckdb_times is None:
        return "order of clauses at most 2 times", [orders]
    words = f"at most {duckdb_times:g} times DuckDB; order of clauses at most 2 times"
    return words, [orders, at_most("ratio", duckdb_times)]


def triangles(edges: Ints) -> int:
    """Return the number of directed triangles with their rotations, by sparse matrices."""
    adjacency = matrix(edges, int(edges.max()) + 1)
    return int(round((adjacency @ adjacency).multiply(adjacency.T).sum()))


def installed_triangles(db: kpg.Database, order: str, joins: str) -> InstalledProgram:
    """Install the rule of triangles with its clauses in some order."""
    program = compile(parse(f"{DECLARED}answer(a, b, c) :- {order}."))
    return InstalledProgram(db, program, distinct_inputs=False, joins=joins)


def answer(run: Run, graph: TriangleGraph, order: str, joins: str) -> float:
    """Return the CPU seconds until the first answer."""
    stopwatch = cpu_stopwatch(f"{graph.name}, {joins}")
    for _ in range(run.fixed_rounds(REPEATS)):
        with kpg.open() as db, installed_triangles(db, order, joins) as installed:
            with stopwatch:
                installed.inputs["e"].insert(graph.edges)
                db.advance()
            count = installed.answer("answer").scan().num_rows
            run.check(graph.triangles in (None, count), f"the triangles of {graph.name}, {joins}, {order}")
    return stopwatch.least


def change_edges(run: Run, graph: TriangleGraph) -> Stopwatch:
    """Measure single edges that are removed and inserted again, until the changes of the answer are in hand."""
    stopwatch = wall_stopwatch(f"{graph.name}, 1 edge")
    with kpg.open() as db, installed_triangles(db, ORDERS[0], "hector") as installed:
        installed.inputs["e"].insert(graph.edges)
        output = installed.answer("answer").output("changes of the answer", keep=False)
        db.advance()
        output.take_changes()
        before, changed_rows = installed.answer("answer").scan().num_rows, 0
        for position in np.random.default_rng(3).permutation(len(graph.edges))[: run.fixed_rounds(CHANGED_EDGES)]:
            edge = [tuple(graph.edges[position].tolist())]
            for change in (installed.inputs["e"].remove, installed.inputs["e"].insert):
                with stopwatch:
                    change(edge)
                    db.advance()
                    changes = output.take_changes()
                changed_rows += int(columns(changes)[1].sum())
        run.check(changed_rows == 0, f"the changes of {graph.name}, summed up")
        run.check(installed.answer("answer").scan().num_rows == before, f"the triangles of {graph.name} at the end")
        output.release()
    return stopwatch


EXPERIMENT = engine_experiment(
    "Q3",
    "directed triangles, by Hector and by binary joins",
    "100k nodes and 1M edges, random and RMAT; a star of 1M rays",
    lambda scale: int(6e9 * scale + 5e8),
    run,
    ("duckdb",),
)

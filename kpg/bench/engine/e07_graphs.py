"""E7: how long do reach, bfs, wcc and scc take on a random digraph of 1M nodes and 5M edges, and changes of it?

The clock of the first answer includes arranging the edges. One bar for reach and bfs is DuckDB's recursive SQL for
reach in the same run. Then come rounds of one changed tuple, an insertion and a removal in turn, and rounds of 1,000
changes, half of them removals. The first change after the load has a row of its own. SciPy computes the expected
answers at the start and at the end. Shortest paths (sssp) with random weights have their first answer only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

import kpg
from kpg import graphs
from kpg.bench.data import key_streams
from kpg.bench.data.graphs import Ints, random_graph
from kpg.bench.engine.e02_rounds import numbered
from kpg.bench.experiment import at_most, engine_experiment
from kpg.bench.measure import Stopwatch, cpu_stopwatch, least_cpu_seconds, wall_stopwatch
from kpg.bench.output_values import rows_after
from kpg.bench.peers import duckdb_recompute, pathway_process, scipy_graphs
from kpg.bench.run import Figures, Reference, Run

ROOTS = np.zeros(1, np.int64)
GRAPH_SEED, FRESH_SEED = 3, 8
PATHWAY_ROUNDS = 5
FIRST_CHANGE_SECONDS = 0.05
SSSP_SECONDS = 0.9
WEIGHT_SEED, MAX_WEIGHT = 9, 100


@dataclass(frozen=True)
class GraphAlgorithm:
    """A question about a graph, in kpg and in SciPy, with its limits."""

    name: str
    describe: Callable[[kpg.Collection, kpg.Collection], kpg.Collection]
    expected: Callable[[Ints, int], Ints]  # int64[columns, n], sorted
    seconds: float | None  # for the first answer
    is_like_duckdb: bool  # whether DuckDB's seconds for reach limit the first answer, too
    one_ms: float
    thousand_ms: float


@dataclass(frozen=True)
class RecursiveSql:
    """DuckDB's recursive reach on the same edges: with its load, and alone."""

    load: Reference
    again: Reference


def run(run: Run) -> None:
    """Run all algorithms on the same graph and the same changes."""
    nodes, count = run.size(1_000_000), run.size(5_000_000)
    edges = random_graph(nodes, count, GRAPH_SEED)
    duckdb = run.ask("duckdb", lambda: recursive_sql(run, edges, nodes))
    for algorithm in ALGORITHMS:
        measure(run, algorithm, edges, nodes, duckdb)
    measure_sssp(run, edges, nodes)


def recursive_sql(run: Run, edges: Ints, nodes: int) -> RecursiveSql:
    """Ask DuckDB for reach."""
    loading, query, table = duckdb_recompute.reach(edges, ROOTS)
    reached = scipy_graphs.reached(edges, nodes, 0)[0]
    run.check(np.array_equal(np.sort(table["node"].to_numpy()), reached), "DuckDB agrees on reach")
    name = f"{duckdb_recompute.name()}, recursive reach"
    return RecursiveSql(Reference(name, loading), Reference(f"{name} again", query))


def measure(run: Run, algorithm: GraphAlgorithm, edges: Ints, nodes: int, duckdb: RecursiveSql | None) -> None:
    """Measure the first answer three times, and rounds after the last."""
    name, count = algorithm.name, len(edges)
    fresh = np.random.default_rng(FRESH_SEED).integers(0, nodes, (count // 5, 2))
    half = count // 2  # single removals and removals by the hundred take different edges
    ones = list(key_streams.alternating(edges[:half], fresh, run.fixed_rounds(200)))
    plan = key_streams.churn(edges[half:], fresh[len(ones) :], run.fixed_rounds(60), run.size(1_000))
    cpu, busy = cpu_stopwatch(f"{name}, first answer"), cpu_stopwatch()
    one, thousand = wall_stopwatch(f"{name}, 1 edge"), wall_stopwatch(f"{name}, 1,000 edges")
    for is_last in (False, False, True):
        with kpg.open() as db:
            relation, first, output = load(db, algorithm, edges, cpu)
            if is_last:
                seen = [first, *play(db, relation, output, [[as_tuples(change)] for change in ones], one)]
                check_rows(run, rows_after([first]), algorithm.expected(edges, nodes), f"the first answer of {name}")
                rounds = [[(inserts, 1), (removals, -1)] for inserts, removals in plan]
                with busy:
                    seen += play(db, relation, output, rounds, thousand)
    expected = algorithm.expected(edges_after(edges, ones, plan, nodes), nodes)
    check_rows(run, rows_after(seen), expected, f"the last answer of {name}")
    scipy = Reference("scipy", least_cpu_seconds(lambda: algorithm.expected(edges, nodes)))
    figures: Figures = {"rows": count, "seconds": cpu.least, "rows_per_second": count / cpu.least}
    words, limits = [], []
    if algorithm.seconds is not None:
        words, limits = [f"at most {algorithm.seconds:g} s"], [at_most("seconds", algorithm.seconds)]
    if algorithm.is_like_duckdb:
        words, limits = [*words, "at most DuckDB's recursive SQL"], [*limits, at_most("ratio", 1)]
        loading, again = (None, None) if duckdb is None else (duckdb.load, duckdb.again)
        run.report(f"{name}, first answer", "; ".join(words), limits, loading, **figures)
        run.report(f"{name}, first answer, against SciPy", reference=scipy, **figures)
    else:
        again = scipy
        run.report(f"{name}, first answer", "; ".join(words), limits, scipy, **figures)
    bar, limits = f"at most {FIRST_CHANGE_SECONDS:g} s", [at_most("seconds", FIRST_CHANGE_SECONDS)]
    run.report(f"{name}, the first change", bar, limits, None, rows=1, seconds=one.seconds[0], state_rows=count)
    for label, size, stopwatch, limit in (
        ("1 edge", 1, one, algorithm.one_ms),
        ("1,000 edges", plan.changes, thousand, algorithm.thousand_ms),
    ):
        bar, limits = f"p50 at most {limit:g} ms", [at_most("p50_ms", limit)]
        run.report(f"{name}, {label}", bar, limits, again, latency=stopwatch, rows=size, state_rows=count)
    if name == "reach" and run.wants_pathway:
        compare_pathway(run, nodes, count, plan.changes, figures, busy.total / len(plan))


def measure_sssp(run: Run, edges: Ints, nodes: int) -> None:
    """Measure the first answer of shortest paths."""
    weights = np.random.default_rng(WEIGHT_SEED).integers(1, MAX_WEIGHT + 1, len(edges))
    weighted, cpu = np.column_stack([edges, weights]), cpu_stopwatch("sssp, first answer")
    for _ in range(3):
        with kpg.open() as db:
            relation, roots = db.input("edges", src=int, dst=int, weight=int), db.input("roots", node=int)
            output = graphs.sssp(relation, roots).output("sssp", keep=False)
            with cpu:
                relation.insert(weighted)
                roots.insert(ROOTS)
                db.advance()
                changes = output.take_changes()
    far, seconds = scipy_graphs.weighted_distances(weighted, nodes, 0)
    reached = np.flatnonzero(far >= 0)
    check_rows(run, rows_after([changes]), np.stack([reached, far[reached]]), "the first answer of sssp")
    bar, limits = f"at most {SSSP_SECONDS:g} s", [at_most("seconds", SSSP_SECONDS)]
    figures: Figures = {"rows": len(edges), "seconds": cpu.least, "rows_per_second": len(edges) / cpu.least}
    run.report("sssp, first answer", bar, limits, Reference("scipy", seconds), **figures)


def as_tuples(change: tuple[Ints, int]) -> tuple[list[tuple[int, ...]], int]:
    """Return a change with its rows as tuples, as a program inserts a single row."""
    rows, diff = change
    return list(map(tuple, rows.tolist())), diff


def load(
    db: kpg.Database, algorithm: GraphAlgorithm, edges: Ints, stopwatch: Stopwatch
) -> tuple[kpg.Input, kpg.Changes, kpg.Output]:
    """Install an algorithm, load the edges, and take the first answer."""
    relation, roots = db.input("edges", src=int, dst=int), db.input("roots", node=int)
    output = algorithm.describe(relation, roots).output(algorithm.name, keep=False)
    with stopwatch:
        relation.insert(edges)
        roots.insert(ROOTS)
        db.advance()
        changes = output.take_changes()
    return relation, changes, output


def play(
    db: kpg.Database,
    relation: kpg.Input,
    output: kpg.Output,
    rounds: Sequence[Sequence[tuple[Ints | list[tuple[int, ...]], int]]],
    stopwatch: Stopwatch,
) -> Iterator[kpg.Changes]:
    """Apply rounds of changes; yield the changes of the answer."""
    for changes in rounds:
        with stopwatch:
            for rows, diff in changes:
                (relation.insert if diff > 0 else relation.remove)(rows)
            db.advance()
            answer_changes = output.take_changes()
        yield answer_changes


def edges_after(edges: Ints, ones: list[tuple[Ints, int]], plan: key_streams.Churn, nodes: int) -> Ints:
    """Return the edges after all rounds."""
    present, removed = plan.applied(edges)
    present = np.concatenate([present, *[rows for rows, diff in ones if diff > 0]])
    removed = np.concatenate([removed, *[rows for rows, diff in ones if diff < 0]])
    codes = np.concatenate([present, removed]) @ [nodes, 1]
    distinct, position = np.unique(codes, return_inverse=True)
    left = np.bincount(position[: len(present)], minlength=len(distinct))
    left -= np.bincount(position[len(present) :], minlength=len(distinct))
    return np.repeat(np.stack([distinct // nodes, distinct % nodes], axis=1), left, axis=0)


def check_rows(run: Run, rows: Ints, expected: Ints, what: str) -> None:
    """Check that two sorted arrays have the same rows."""
    run.check(np.array_equal(rows, expected), what)


def compare_pathway(run: Run, nodes: int, edges: int, changes: int, figures: Figures, seconds: float) -> None:
    """Compare with reach in Pathway, on as many edges as it may receive."""
    share = run.pathway_share(edges)
    nodes, edges = int(nodes * share), int(edges * share)
    graph = random_graph(nodes, edges, GRAPH_SEED)
    fresh = np.random.default_rng(FRESH_SEED).integers(0, nodes, (PATHWAY_ROUNDS * changes, 2))
    bar, limits = "at least 50 times faster", [at_most("ratio", 1 / 50)]
    columns = pathway_process.ask("load_graph_columns", edges=graph)
    reached = len(scipy_graphs.reached(graph, nodes, 0)[0])
    run.check(columns.problem or columns.rows == reached, "Pathway agrees on reach, from columns")
    way = f"edges as columns, a pandas frame, {edges} edges"
    run.report("reach, first answer, against Pathway, from columns", bar, limits, columns.load(edges, way), **figures)
    plan = key_streams.churn(numbered(graph, 0), numbered(fresh, edges), PATHWAY_ROUNDS, changes)
    answer = pathway_process.ask(
        "rounds_of_edges", rows=numbered(graph, 0), inserts=plan.inserts, removals=plan.removals
    )
    left = edges_after(graph, [], key_streams.churn(graph, fresh, PATHWAY_ROUNDS, changes), nodes)
    reached = len(scipy_graphs.reached(left, nodes, 0)[0])
    run.check(answer.problem or answer.rows == reached, "Pathway agrees on reach after all rounds")
    way = f"rows through its Python connector, on {edges} edges"
    run.report("reach, first answer, against Pathway", bar, limits, answer.load(edges, way), **figures)
    changed: Figures = {"rows": changes, "seconds": seconds, "state_rows": figures["rows"]}
    run.report("reach, 1,000 edges, against Pathway", reference=answer.rounds(changes, way), **changed)


def reach_expected(edges: Ints, nodes: int) -> Ints:
    """Return the nodes that node 0 reaches."""
    return scipy_graphs.reached(edges, nodes, 0)[0].reshape(1, -1)


def bfs_expected(edges: Ints, nodes: int) -> Ints:
    """Return the nodes that node 0 reaches, with their distances."""
    far = scipy_graphs.distances(edges, nodes, 0)[0]
    reached = np.flatnonzero(far >= 0)
    return np.stack([reached, far[reached]])


def wcc_expected(edges: Ints, nodes: int) -> Ints:
    """Return the weak component of each node that has an edge."""
    return labelled_ends(edges, scipy_graphs.weak(edges, nodes)[0])


def scc_expected(edges: Ints, nodes: int) -> Ints:
    """Return the strong component of each node that has an edge."""
    return labelled_ends(edges, scipy_graphs.strong(edges, nodes)[0])


def labelled_ends(edges: Ints, labels: Ints) -> Ints:
    """Return the nodes with an edge, with their labels."""
    has_edge = np.zeros(len(labels), np.bool_)
    has_edge[edges.reshape(-1)] = True
    nodes = np.flatnonzero(has_edge)
    return np.stack([nodes, labels[nodes]])


ALGORITHMS = (
    GraphAlgorithm("reach", graphs.reach, reach_expected, None, True, 0.15, 10),
    GraphAlgorithm("bfs", graphs.bfs, bfs_expected, 0.6, True, 0.15, 25),
    GraphAlgorithm("wcc", lambda edges, roots: graphs.wcc(edges), wcc_expected, 0.9, False, 0.4, 15),
    GraphAlgorithm("scc", lambda edges, roots: graphs.scc(edges).nodes, scc_expected, 15, False, 1.5, 50),
)
EXPERIMENT = engine_experiment(
    "E7",
    "reach, bfs, wcc, scc, sssp",
    "1M nodes, 5M edges, then rounds of 1 and of 1,000 edges",
    lambda scale: int(4e9 * scale + 4e8),
    run,
    ("duckdb", "pathway"),
)

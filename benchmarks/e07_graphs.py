"""E7: how long do reach, bfs, wcc and scc take on a random digraph of 1M nodes and 5M edges, and changes of it?

The clock of the first answer includes arranging the edges. DuckDB's recursive SQL, asked for reach in the same run, is
the bar for reach and bfs: a first evaluation slower than that convinces nobody. Then rounds of one change, insert and
removal in turn, and rounds of 1,000, half of them removals. SciPy says what each answer must be, at the start and at
the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

import kpg
from benchmarks import data, peers_duckdb, peers_numpy, peers_pathway
from benchmarks.answers import rows_after
from benchmarks.lines import Figures, Reference, Run, at_most
from benchmarks.measure import Clock, cpu_clock, least_cpu_seconds, wall_clock
from kpg import graphs

ROOTS = np.zeros(1, np.int64)


@dataclass(frozen=True)
class Algorithm:
    """A question about a graph: to kpg, to SciPy, and how soon it is to be answered."""

    name: str
    describe: Callable[[kpg.Collection, kpg.Collection], kpg.Collection]
    expected: Callable[[data.Ints, int], data.Ints]  # int64[columns, n], sorted
    seconds: float | None  # for the first answer; None: as long as DuckDB takes for reach
    one_ms: float
    thousand_ms: float


def run(run: Run) -> None:
    """All algorithms on the same graph and the same changes."""
    nodes, count = run.size(1_000_000), run.size(5_000_000)
    edges = data.digraph(nodes, count)
    loading, query, table = peers_duckdb.reach(edges, ROOTS)
    assert (np.sort(table["node"].to_numpy()) == peers_numpy.reached(edges, nodes, 0)).all()
    duckdb = Reference(f"{peers_duckdb.NAME}, recursive reach", loading)
    recompute = Reference(f"{peers_duckdb.NAME}, recursive reach again", query)
    for algorithm in ALGORITHMS:
        measure(run, algorithm, edges, nodes, duckdb, recompute)


def measure(
    run: Run, algorithm: Algorithm, edges: data.Ints, nodes: int, duckdb: Reference, recompute: Reference
) -> None:
    """The first answer three times, the last followed by rounds."""
    name, count = algorithm.name, len(edges)
    fresh = np.random.default_rng(8).integers(0, nodes, (count // 5, 2))
    half = count // 2  # the ones that go one by one, and those that go by hundreds, are different
    ones = list(data.alternating(edges[:half], fresh, run.times(200)))
    plan = data.churn(edges[half:], fresh[len(ones) :], run.times(60), run.size(1_000))
    cpu, busy = cpu_clock(f"{name}, first answer"), cpu_clock()
    one, thousand = wall_clock(f"{name}, 1 edge"), wall_clock(f"{name}, 1,000 edges")
    for last in (False, False, True):
        with kpg.open() as db:
            relation, first, output = load(db, algorithm, edges, cpu)
            if last:
                seen = [first, *play(db, relation, output, [[change] for change in ones], one)]
                assert_rows(rows_after([first]), algorithm.expected(edges, nodes))
                rounds = [[(inserts, 1), (removals, -1)] for inserts, removals in plan]
                with busy:
                    seen += play(db, relation, output, rounds, thousand)
    assert_rows(rows_after(seen), algorithm.expected(changed(edges, ones, plan, nodes), nodes))
    scipy = Reference("scipy", least_cpu_seconds(lambda: algorithm.expected(edges, nodes)))
    found: Figures = {"rows": count, "seconds": cpu.least, "rows_per_second": count / cpu.least}
    if algorithm.seconds is None:
        bar, bars, again = "at most DuckDB's recursive SQL", [at_most("ratio", 1)], recompute
        run.report(f"{name}, first answer", bar, bars, duckdb, **found)
        run.report(f"{name}, first answer, against SciPy", reference=scipy, **found)
    else:
        bar, bars, again = f"at most {algorithm.seconds:g} s", [at_most("seconds", algorithm.seconds)], scipy
        run.report(f"{name}, first answer", bar, bars, scipy, **found)
    for label, size, clock, limit in (
        ("1 edge", 1, one, algorithm.one_ms),
        ("1,000 edges", plan.changes, thousand, algorithm.thousand_ms),
    ):
        bar, bars = f"p50 at most {limit:g} ms", [at_most("p50_ms", limit)]
        run.report(f"{name}, {label}", bar, bars, again, latency=clock, rows=size, state_rows=count)
    if name == "reach" and run.asks_pathway():
        compare_pathway(run, nodes, count, plan.changes, found, busy.total / len(plan))


def load(
    db: kpg.Database, algorithm: Algorithm, edges: data.Ints, clock: Clock
) -> tuple[kpg.Input, kpg.Changes, kpg.Output]:
    """Install, load, and take the first answer."""
    relation, roots = db.input("edges", src=int, dst=int), db.input("roots", node=int)
    output = algorithm.describe(relation, roots).output(algorithm.name, keep=False)
    with clock:
        relation.insert(edges)
        roots.insert(ROOTS)
        db.advance()
        changes = output.take_changes()
    return relation, changes, output


def play(
    db: kpg.Database, relation: kpg.Input, output: kpg.Output, rounds: list[list[tuple[data.Ints, int]]], clock: Clock
) -> Iterator[kpg.Changes]:
    """The changes of the answer, round by round."""
    for changes in rounds:
        with clock:
            for rows, diff in changes:
                (relation.insert if diff > 0 else relation.remove)(rows)
            db.advance()
            found = output.take_changes()
        yield found


def changed(edges: data.Ints, ones: list[tuple[data.Ints, int]], plan: data.Churn, nodes: int) -> data.Ints:
    """The edges after all rounds."""
    present, removed = plan.applied(edges)
    present = np.concatenate([present, *[rows for rows, diff in ones if diff > 0]])
    removed = np.concatenate([removed, *[rows for rows, diff in ones if diff < 0]])
    codes = np.concatenate([present, removed]) @ [nodes, 1]
    kinds, where = np.unique(codes, return_inverse=True)
    left = np.bincount(where[: len(present)], minlength=len(kinds))
    left -= np.bincount(where[len(present) :], minlength=len(kinds))
    return np.repeat(np.stack([kinds // nodes, kinds % nodes], axis=1), left, axis=0)


def assert_rows(found: data.Ints, expected: data.Ints) -> None:
    """The same rows, sorted."""
    assert found.shape == expected.shape and (found == expected).all()


def compare_pathway(run: Run, nodes: int, edges: int, changes: int, found: Figures, seconds: float) -> None:
    """Reach in Pathway, on as many edges as it is given."""
    share, rounds = run.pathway_share(edges), 5
    nodes, edges = int(nodes * share), int(edges * share)
    peer = peers_pathway.ask("rounds_of_edges", nodes=nodes, edges=edges, changes=changes, rounds=rounds)
    graph, fresh = data.digraph(nodes, edges), np.random.default_rng(8).integers(0, nodes, (rounds * changes, 2))
    left = changed(graph, [], data.churn(graph, fresh, rounds, changes), nodes)
    assert peer.problem or peer.rows == len(peers_numpy.reached(left, nodes, 0))
    way = f"rows through its Python connector, on {edges} edges"
    bar, bars = "at least 50 times faster", [at_most("ratio", 1 / 50)]
    run.report("reach, first answer, against Pathway", bar, bars, peer.load(edges, way), **found)
    rounds_found: Figures = {"rows": changes, "seconds": seconds, "state_rows": found["rows"]}
    run.report("reach, 1,000 edges, against Pathway", reference=peer.rounds(changes, way), **rounds_found)


def reach_expected(edges: data.Ints, nodes: int) -> data.Ints:
    return peers_numpy.reached(edges, nodes, 0).reshape(1, -1)


def bfs_expected(edges: data.Ints, nodes: int) -> data.Ints:
    far = peers_numpy.distances(edges, nodes, 0)
    reached = np.flatnonzero(far >= 0)
    return np.stack([reached, far[reached]])


def wcc_expected(edges: data.Ints, nodes: int) -> data.Ints:
    return of_ends(edges, peers_numpy.weak_components(edges, nodes))


def scc_expected(edges: data.Ints, nodes: int) -> data.Ints:
    return of_ends(edges, peers_numpy.strong_components(edges, nodes))


def of_ends(edges: data.Ints, labels: data.Ints) -> data.Ints:
    """Nodes with their label, those that no edge touches left out."""
    touched = np.zeros(len(labels), np.bool_)
    touched[edges.reshape(-1)] = True
    nodes = np.flatnonzero(touched)
    return np.stack([nodes, labels[nodes]])


ALGORITHMS = (
    Algorithm("reach", graphs.reach, reach_expected, None, 1, 25),
    Algorithm("bfs", graphs.bfs, bfs_expected, None, 1, 25),
    Algorithm("wcc", lambda edges, roots: graphs.wcc(edges), wcc_expected, 6, 3, 60),
    Algorithm("scc", lambda edges, roots: graphs.scc(edges).nodes, scc_expected, 15, 40, 150),
)

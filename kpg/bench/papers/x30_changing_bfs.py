"""X30: how does maintaining distances over a million updates compare with a hand-written program for that?

A random graph; each round inserts edges and removes as many. The hand-written program uses one thread and arrays.
"""

from __future__ import annotations

import time

import numpy as np

from kpg.bench.baselines.incremental_bfs import FAR, ChangingDistances
from kpg.bench.data.file_graphs import read_graph
from kpg.bench.data.graphs import Ints, random_graph
from kpg.bench.experiment import Experiment, PaperFigure, snap
from kpg.bench.measure import Stopwatch
from kpg.bench.peers import scipy_graphs
from kpg.bench.run import Run
from kpg.graphs.bfs import bfs
from kpg.opening import open as open_database

NODES, EDGES, UPDATES = 100_000, 500_000, 1_000_000
BATCHES = (1_000, 10_000, 100_000)


def run(run: Run) -> None:
    """Apply the same updates by the hand-written program, and by kpg in batches."""
    nodes, edges, updates = graph_of(run)
    start, steps = len(edges) - updates // 2, updates // 2
    final = edges[steps:]
    seconds, expected = by_hand(edges, start, steps, nodes)
    far = run.ask("scipy", lambda: scipy_graphs.distances(final, nodes, int(edges[0, 0]))[0])
    if far is not None:
        run.check(
            np.array_equal(np.where(expected >= FAR, -1, expected), far), "the hand-written program agrees with SciPy"
        )
    run.record("hand-written, one thread", updates=updates, cpu_seconds=seconds, updates_per_second=updates / seconds)
    for number, batch in enumerate(BATCHES):
        batch = max(2, min(updates, run.size(batch, least=20)))
        run.progress(f"batches of {batch:,}", number, len(BATCHES))
        our_seconds, latencies, distances = by_kpg(edges, start, batch, updates)
        run.check(np.array_equal(distances, np.where(expected >= FAR, -1, expected)), "distances after all updates")
        figures = {"updates": updates, "cpu_seconds": our_seconds, "updates_per_second": updates / our_seconds}
        run.latencies(f"kpg, batches of {batch:,}", latencies, **figures)
    run.figure("best_seconds_by_hand_written", min(row["cpu_seconds"] for row in run.result.rows[1:]) / seconds)


def graph_of(run: Run) -> tuple[int, Ints, int]:
    """Return the nodes, the initial and later edges, and the number of updates; half of a file is inserted later."""
    nodes, updates = run.size(NODES, least=20), run.size(UPDATES, least=40)
    if run.data is None:
        return nodes, random_graph(nodes, run.size(EDGES, least=100) + updates // 2, run.seed), updates
    nodes, file_edges = read_graph(run.data)
    edges = np.random.default_rng(run.seed).permutation(file_edges)
    return nodes, edges, min(updates, len(edges))


def by_hand(edges: Ints, start: int, steps: int, nodes: int) -> tuple[float, Ints]:
    """Return the CPU seconds of the updates alone, and the final distances."""
    root = int(edges[0, 0])
    ChangingDistances(nodes, edges[:10], root, 2).apply(edges[10:12], edges[:2])  # compile
    state = ChangingDistances(nodes, edges[:start], root, steps)
    began = time.process_time()
    for first in range(0, steps, 1_000):
        last = min(steps, first + 1_000)
        state.apply(edges[start + first : start + last], edges[first:last])
    return time.process_time() - began, state.far


def by_kpg(edges: Ints, start: int, batch: int, updates: int) -> tuple[float, list[float], Ints]:
    """Return the CPU seconds of the updates alone, the latency of each batch, and the final distances."""
    nodes = int(edges.max()) + 1
    stopwatch, half = Stopwatch(f"a batch of {batch:,}"), batch // 2
    with open_database() as db:
        relation, roots = db.input("edges", src=int, dst=int), db.input("roots", node=int)
        output = bfs(relation, roots).output("distances")
        relation.insert(edges[:start])
        roots.insert([(int(edges[0, 0]),)])
        db.advance()
        began = time.process_time()
        for first in range(0, updates // 2, half):
            last = min(updates // 2, first + half)
            with stopwatch:
                relation.insert(edges[start + first : start + last])
                relation.remove(edges[first:last])
                db.advance()
        seconds = time.process_time() - began
        table = output.snapshot()
    distances = np.full(nodes, -1, np.int64)
    distances[table["node"].to_numpy()] = table["distance"].to_numpy()
    return seconds, stopwatch.seconds, distances


EXPERIMENT = Experiment(
    id="X30",
    title="incremental distances against a hand-written program",
    paper="K-Pg (first version), section 5.3",
    claim="An optimised single-threaded program for BFS labels over 1M updates is matched with two to four cores.",
    size="100,000 nodes, 500,000 edges, 1M updates",
    printed=(PaperFigure("cores to match the hand-written program", "2 to 4"),),
    memory=lambda scale: int(1.0e9 * scale + 4e8),
    run=run,
    peers=("scipy",),
    reads=snap(EDGES + UPDATES // 2),
)

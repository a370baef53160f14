"""X30: how does keeping distances right over a million updates compare with a program written for just that?

A random graph; each round an edge comes and one goes, or many of each. The hand-written program is one thread on
arrays.
"""

from __future__ import annotations

import time

import numpy as np

from kpg.bench.baselines.changing import FAR, ChangingDistances
from kpg.bench.clocks import Clock
from kpg.bench.data.given import graph as graph_of
from kpg.bench.data.graphs import Ints, random_graph
from kpg.bench.experiment import Experiment, Printed, snap
from kpg.bench.peers import sparse
from kpg.bench.run import Run
from kpg.graphs.bfs import bfs
from kpg.opening import open as open_database

NODES, EDGES, UPDATES = 100_000, 500_000, 1_000_000
BATCHES = (1_000, 10_000, 100_000)


def run(run: Run) -> None:
    """The same updates by hand, and by kpg in batches."""
    nodes, edges, updates = made(run)
    start, steps = len(edges) - updates // 2, updates // 2
    final = edges[steps:]
    seconds, found = by_hand(edges, start, steps, nodes)
    far = run.ask("scipy", lambda: sparse.distances(final, nodes, int(edges[0, 0]))[0])
    if far is not None:
        run.check(np.array_equal(np.where(found >= FAR, -1, found), far), "the program by hand agrees with SciPy")
    run.record("by hand, one thread", updates=updates, cpu_seconds=seconds, updates_per_second=updates / seconds)
    for number, batch in enumerate(BATCHES):
        batch = max(2, min(updates, run.size(batch, least=20)))
        run.say(f"batches of {batch:,}", number, len(BATCHES))
        ours, latencies, distances = by_kpg(edges, start, batch, updates)
        run.check(np.array_equal(distances, np.where(found >= FAR, -1, found)), "distances after all updates")
        figures = {"updates": updates, "cpu_seconds": ours, "updates_per_second": updates / ours}
        run.latencies(f"kpg, batches of {batch:,}", latencies, **figures)
    run.figure("best_seconds_by_hand_written", min(row["cpu_seconds"] for row in run.result.rows[1:]) / seconds)


def made(run: Run) -> tuple[int, Ints, int]:
    """Nodes, the edges that are there and those that come later, and how many updates; of a file, half comes later."""
    nodes, updates = run.size(NODES, least=20), run.size(UPDATES, least=40)
    if run.data is None:
        return nodes, random_graph(nodes, run.size(EDGES, least=100) + updates // 2, run.seed), updates
    nodes, given = graph_of(run.data)
    edges = np.random.default_rng(run.seed).permutation(given)
    return nodes, edges, min(updates, len(edges))


def by_hand(edges: Ints, start: int, steps: int, nodes: int) -> tuple[float, Ints]:
    """CPU seconds of the updates alone, and the distances at the end; an edge comes, one goes, each time."""
    root = int(edges[0, 0])
    ChangingDistances(nodes, edges[:10], root, 2).apply(edges[10:12], edges[:2])  # compile
    state = ChangingDistances(nodes, edges[:start], root, steps)
    began = time.process_time()
    for each in range(0, steps, 1_000):
        last = min(steps, each + 1_000)
        state.apply(edges[start + each : start + last], edges[each:last])
    return time.process_time() - began, state.far


def by_kpg(edges: Ints, start: int, batch: int, updates: int) -> tuple[float, list[float], Ints]:
    """CPU seconds of the updates alone, the latency of each batch, and the distances at the end."""
    nodes = int(edges.max()) + 1
    clock, half = Clock(), batch // 2
    with open_database() as db:
        relation, roots = db.input("edges", src=int, dst=int), db.input("roots", node=int)
        output = bfs(relation, roots).output("distances")
        relation.insert(edges[:start])
        roots.insert([(int(edges[0, 0]),)])
        db.advance()
        began = time.process_time()
        for each in range(0, updates // 2, half):
            last = min(updates // 2, each + half)
            with clock:
                relation.insert(edges[start + each : start + last])
                relation.remove(edges[each:last])
                db.advance()
        seconds = time.process_time() - began
        table = output.snapshot()
    found = np.full(nodes, -1, np.int64)
    found[table["node"].to_numpy()] = table["distance"].to_numpy()
    return seconds, clock.seconds, found


EXPERIMENT = Experiment(
    id="X30",
    title="incremental distances against a program by hand",
    paper="K-Pg (first version), section 5.3",
    claim="An optimised single-threaded program for BFS labels over 1M updates is matched with two to four cores.",
    size="100,000 nodes, 500,000 edges, 1M updates",
    printed=(Printed("cores to match the program by hand", "2 to 4"),),
    memory=lambda scale: int(1.0e9 * scale + 4e8),
    run=run,
    peers=("scipy",),
    reads=snap(EDGES + UPDATES // 2),
)

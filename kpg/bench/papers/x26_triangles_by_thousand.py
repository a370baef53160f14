"""X26: how fast are worst-case optimal joins on triangles, a thousand nodes a round, with a hub and without?

The hub has ten thousand edges in and as many out, so binary joins have a hundred million pairs at it. A join that takes
too long is stopped and counts with its time until then: a ratio to it is a lower bound.
"""

from __future__ import annotations

import numpy as np

from kpg.bench.data.file_graphs import read_graph
from kpg.bench.data.graphs import Ints, random_graph, rmat
from kpg.bench.experiment import THESIS_I7, Experiment, PaperFigure, at_least, at_most, snap
from kpg.bench.papers.x25_triangles_by_node import once
from kpg.bench.run import Run
from kpg.bench.triangle_joins import BINARY, HECTOR, play, rounds_of

NODES, EDGES, NEIGHBOURS = 100_000, 500_000, 10_000  # in each direction of the hub
LIMIT_SECONDS = 60.0
MEMORY_LIMIT_BYTES = 12 << 30


def run(run: Run) -> None:
    """Run each join on both graphs, or on that of the file."""
    for name, edges in graphs(run):
        rounds = rounds_of(edges, run.size(1_000, least=5))
        best = {}
        for kind, ways in (("hector", HECTOR), ("binary", BINARY)):
            plays = []
            for way in ways:
                played = play(run, way, rounds, LIMIT_SECONDS, MEMORY_LIMIT_BYTES)
                done = f"{len(played.seconds)}/{len(rounds)}"
                run.latencies(f"{name}: {way}", played.seconds, total_s=played.spent, done=done, ended=played.ended)
                plays.append(played)
            best[kind] = min(plays, key=lambda played: played.spent)
        times = best["binary"].spent / best["hector"].spent
        if name == "uniform":
            run.figure("uniform_hector_by_best_binary", 1 / times)
        else:
            run.figure(f"{name}_best_binary_by_hector", times)
        if best["binary"].ended:
            run.note(f"{name}: no order of binary joins finished: Hector is at least {times:.3g} times faster")


def graphs(run: Run) -> tuple[tuple[str, Ints], ...]:
    """Return the graphs with their names."""
    if run.data is not None:
        return (("given", once(read_graph(run.data)[1])),)
    return (("hub", with_hub(run)), ("uniform", uniform(run)))


def with_hub(run: Run) -> Ints:
    """Return a skewed graph with a hub."""
    nodes, neighbours = run.size(NODES, least=50), run.size(NEIGHBOURS, least=20)
    random = np.random.default_rng(run.seed)
    hub = np.full(min(neighbours, nodes), nodes // 2)
    others = [random.choice(nodes, len(hub), replace=False) for _ in range(2)]
    edges = [rmat(nodes, run.size(EDGES, least=300), run.seed), np.stack([hub, others[0]], axis=1)]
    return once(np.concatenate([*edges, np.stack([others[1], hub], axis=1)]))


def uniform(run: Run) -> Ints:
    """Return as many edges between random nodes."""
    return once(random_graph(run.size(NODES, least=50), run.size(EDGES, least=300), run.seed))


EXPERIMENT = Experiment(
    id="X26",
    title="3DF: triangles, a thousand nodes a round",
    paper="Optimising Distributed Dataflows in Interactive Environments, figure 7",
    claim="With larger batches worst-case optimal joins are ten times faster than any order of binary joins.",
    size="100,000 nodes, 500,000 edges, a hub with 10,000 in and 10,000 out (the thesis: livejournal)",
    printed=(PaperFigure("worst-case optimal against binary joins", "an order of magnitude", THESIS_I7),),
    memory=lambda scale: int(12e9 * min(1.0, scale) + 2e9 * scale),
    run=run,
    limits=(at_least("hub_best_binary_by_hector", 5), at_most("uniform_hector_by_best_binary", 2)),
    reads=snap(EDGES),
)

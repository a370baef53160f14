"""X25: triangles of a skewed graph, the edges of one node a round: which ways of joining keep up?

Nodes are numbered as a crawl would meet them, breadth first: the first have many edges, between each other too, and in
the worst order those of one node meet each other. Numbered at random, the first tenth of the nodes would hardly have
any edge between each other, and no way would have anything to do.
"""

from __future__ import annotations

import numpy as np

from kpg.bench.data.given import graph as graph_of
from kpg.bench.data.graphs import Ints, crawled, rmat
from kpg.bench.experiment import THESIS_I5, Experiment, Printed, snap
from kpg.bench.run import Run
from kpg.bench.triangles import BINARY, HECTOR, play, rounds_of

NODES, EDGES = 20_000, 280_000  # as many edges a node as livejournal has
PATIENCE_SECONDS = 20.0
LIMIT = 8 << 30


def run(run: Run) -> None:
    """Each way on the same rounds."""
    rounds = rounds_of(graph(run), 1)[: run.size(2_000, least=20)]
    spent = {}
    for way in (*HECTOR, *BINARY):
        played = play(run, way, rounds, PATIENCE_SECONDS, LIMIT)
        done = f"{len(played.seconds)}/{len(rounds)}"
        run.latencies(way, played.seconds, total_s=played.spent, done=done, ended=played.ended)
        spent[way] = played.spent
        if played.ended:
            run.note(f"{way} did not come to its end: it counts with the time until then")
    hector, binary = ([spent[way] for way in ways] for ways in (HECTOR, BINARY))
    run.figure("best_binary_by_best_hector", min(binary) / min(hector))
    run.figure("worst_binary_by_worst_hector", max(binary) / max(hector))


def graph(run: Run) -> Ints:
    """A graph as skewed as livejournal and numbered as that is, or of a file, each edge once."""
    if run.data is not None:
        return once(graph_of(run.data)[1])
    edges = rmat(run.size(NODES, least=50), run.size(EDGES, least=500), run.seed)
    return once(crawled(once(edges)))


def once(edges: Ints) -> Ints:
    """Each edge once, without those from a node to itself."""
    space = int(edges.max()) + 1
    codes = edges[:, 0] * space + edges[:, 1]
    codes = np.unique(codes[edges[:, 0] != edges[:, 1]])
    return np.stack([codes // space, codes % space], axis=1)


EXPERIMENT = Experiment(
    id="X25",
    title="3DF: triangles, a node a round",
    paper="Optimising Distributed Dataflows in Interactive Environments, figure 6",
    claim="Worst-case optimal joins do well whatever the order; two at a time, the worst order runs out of memory.",
    size="an RMAT graph of 20,000 nodes and 280,000 edges, crawled; 2,000 rounds (the thesis: livejournal)",
    printed=(
        Printed("worst order of two at a time", "out of memory at node 87", THESIS_I5),
        Printed("best order of two at a time", "about as fast as worst-case optimal", THESIS_I5),
    ),
    memory=lambda scale: int(3e9 * min(1.0, scale) + 1e9 * scale),
    run=run,
    reads=snap(EDGES),
)

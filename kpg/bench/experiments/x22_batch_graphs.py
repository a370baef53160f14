"""X22: how long do the indexes of a graph, reachability, distances and components take, from nothing to the first
answer?

On a graph as skewed as livejournal, or one from a file (`--data`). Beside us: programs for one purpose on one
thread, with arrays and with hash maps for the state of nodes (their graph is packed beforehand, which is not on
their clock, as in the papers; what packing takes is a line of its own), SciPy, and networkx where the graph is small
enough for it.

With several workers, as in the papers, each has its share of the edges before the clock starts; how the rows come to
one worker is not on the clock either. What several could reach on this machine is measured, too: as many processes at
once that exchange nothing, each with a graph of its own that is as much smaller.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kpg.api.collection import Collection
from kpg.api.contracts import Database, Input
from kpg.bench.baselines import arrays, hashes
from kpg.bench.data import given
from kpg.bench.data.graphs import LIVEJOURNAL, Ints, livejournal_like
from kpg.bench.experiment import Experiment, Printed, at_least, at_most, snap
from kpg.bench.experiments.x12_strong_scaling import named, numbers_of_workers
from kpg.bench.peers import sparse
from kpg.bench.peers.apart import Apart
from kpg.bench.run import Run
from kpg.bench.warming import opened
from kpg.graphs.bfs import bfs
from kpg.graphs.reach import reach
from kpg.graphs.wcc import wcc

SHARE = 0.1  # of livejournal, at scale 1
TASKS = ("index-f", "reach", "sssp", "index-r", "wcc")
NETWORKX_EDGES = 1_000_000
REPEATS = 2
PATIENCE = 3600.0  # seconds, with processes of our own
FEW = 0.005  # of the size: what each db does first, so that its workers have loaded their code


@dataclass(frozen=True, slots=True)
class Graph:
    """Edges, and where reach and sssp begin: the first node with an edge of its own."""

    nodes: int
    edges: Ints
    root: int


def run(run: Run) -> None:
    """Baselines, peers, then kpg on one worker and on more; all say the same."""
    graph = made(run)
    run.note(f"{graph.nodes:,} nodes, {len(graph.edges):,} edges")
    expected = baselines(run, graph)
    run.ask("scipy", lambda: ask_scipy(run, graph, expected))
    if len(graph.edges) <= NETWORKX_EDGES:
        run.ask("networkx", lambda: ask_networkx(run, graph, expected))
    walls, cpus = [], []
    for workers in numbers_of_workers(run):
        wall, cpu = kpg_seconds(run, graph, expected, workers)
        walls.append(wall)
        cpus.append(cpu)
        if workers > 1 and run.data is None:
            best = sum(walls[0].values()) / sum(apart_seconds(run, workers).values())
            run.figure(f"{workers}_processes_that_exchange_nothing_times_faster", best)
    rows = {row["case"]: row for row in run.result.rows}
    for task in ("reach", "sssp", "wcc"):
        run.figure(f"{task}_times_hash_map", cpus[0][task] / rows["one thread, hash map"][f"{task}_s"])
    worst = max(run.result.figures[f"{task}_times_hash_map"] for task in ("reach", "sssp", "wcc"))
    run.figure("worst_times_hash_map", worst)
    run.figure("two_workers_times_faster", sum(walls[0].values()) / sum(walls[min(1, len(walls) - 1)].values()))


def made(run: Run) -> Graph:
    """The graph of a file, or one like livejournal."""
    run.say("making the graph", 0, 0)
    nodes, edges = graph_of(**source_of(run))
    return Graph(nodes, edges, int(edges[:, 0].min()))


def source_of(run: Run) -> dict[str, Any]:
    """What the graph is made from."""
    return {"scale": run.scale, "seed": run.seed, "file": None if run.data is None else str(run.data)}


def graph_of(scale: float, seed: int, file: str | None) -> tuple[int, Ints]:
    """How many nodes, and the edges."""
    if file is None:
        return livejournal_like(SHARE * scale, seed)
    return given.graph(Path(file))


def share_of_edges(worker: int, workers: int, scale: float, seed: int, file: str | None) -> dict[str, Ints]:
    """What a worker has of the edges, made where it runs."""
    _, edges = graph_of(scale, seed, file)
    mine = edges[worker::workers]
    return {"src": np.ascontiguousarray(mine[:, 0]), "dst": np.ascontiguousarray(mine[:, 1])}


@dataclass(frozen=True, slots=True)
class Expected:
    """The right answers."""

    distances: Ints  # -1: not reached
    components: Ints  # the least node of each node's component
    touched: Ints  # the nodes that are ends of edges


def baselines(run: Run, graph: Graph) -> Expected:
    """The single-threaded programs; their answers, which must agree."""
    sources, targets = (np.ascontiguousarray(graph.edges[:, each]) for each in (0, 1))
    (starts, onward), packing = timed(lambda: arrays.forward(sources, targets, graph.nodes))
    for times in range(2):  # the first time compiles
        far, reach_seconds = timed(lambda: arrays.distances(starts, onward, graph.nodes, graph.root))
        least, wcc_seconds = timed(lambda: arrays.components(sources, targets, graph.nodes))
        (nodes, found), hash_reach = timed(lambda: hashes.distances(starts, onward, graph.nodes, graph.root))
        (ends, labels), hash_wcc = timed(lambda: hashes.components(sources, targets))
        run.say("baselines", times, 2)
    touched = np.unique(graph.edges)
    run.check((far[nodes] == found).all() and len(nodes) == (far >= 0).sum(), "both baselines, distances")
    run.check((least[ends] == labels).all() and len(ends) == len(touched), "both baselines, components")
    run.record("one thread, arrays", reach_s=reach_seconds, sssp_s=reach_seconds, wcc_s=wcc_seconds)
    run.record("one thread, hash map", reach_s=hash_reach, sssp_s=hash_reach, wcc_s=hash_wcc)
    run.record("packing the graph for these", **{"index-f_s": packing})
    return Expected(far, least, touched)


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What some work returns, and its CPU seconds."""
    began = time.process_time()
    found = work()
    return found, time.process_time() - began


def ask_scipy(run: Run, graph: Graph, expected: Expected) -> None:
    """SciPy's compiled graph routines."""
    (far, reach_seconds), (least, wcc_seconds) = (
        sparse.distances(graph.edges, graph.nodes, graph.root),
        sparse.weak(graph.edges, graph.nodes),
    )
    run.check((far == expected.distances).all() and (least == expected.components).all(), "SciPy agrees")
    run.record("scipy", sssp_s=reach_seconds, wcc_s=wcc_seconds)


def ask_networkx(run: Run, graph: Graph, expected: Expected) -> None:
    """networkx, in Python."""
    import networkx

    made = networkx.DiGraph(graph.edges.tolist())
    far, seconds = timed(lambda: networkx.single_source_shortest_path_length(made, graph.root))
    right = {node: far for node, far in enumerate(expected.distances.tolist()) if far >= 0}
    parts, wcc_seconds = timed(lambda: list(networkx.weakly_connected_components(made)))
    least = {node: min(part) for part in parts for node in part}
    components = expected.components[expected.touched].tolist()
    run.check(far == right, "networkx agrees on distances")
    run.check(least == dict(zip(expected.touched.tolist(), components, strict=True)), "networkx agrees on components")
    run.record("networkx", sssp_s=seconds, wcc_s=wcc_seconds)


Seconds = dict[str, float]  # by task


def kpg_seconds(run: Run, graph: Graph, expected: Expected, workers: int) -> tuple[Seconds, Seconds]:
    """Wall and CPU seconds of each task, the least of some times, in a db that has done all of them on a few edges."""
    kept: list[Tasks] = []
    for repeat in range(REPEATS):
        run.say(f"kpg, {named(workers)}", repeat, REPEATS)
        with opened(workers) as db:
            few: dict[str, Any] = {"scale": FEW, "seed": run.seed, "file": None}
            Tasks(db, "few ").perform(int(graph_of(**few)[1][0, 0]), few)
            kept.append(Tasks(db))
            kept[-1].perform(graph.root, source_of(run))
            agree(run, kept[-1].answers, expected)
    wall = {task: min(each.wall[task] for each in kept) for task in TASKS}
    cpu = {task: min(each.cpu[task] for each in kept) for task in TASKS}
    shown = cpu if workers == 1 else wall
    run.record(
        f"kpg, {named(workers)}" + (", CPU" if workers == 1 else ", elapsed"),
        **{f"{task}_s": shown[task] for task in TASKS},
    )
    if workers == 1:
        run.record("kpg, 1 worker, elapsed", **{f"{task}_s": wall[task] for task in TASKS})
    return wall, cpu


def apart_seconds(run: Run, workers: int) -> Seconds:
    """Wall seconds of each task in the slowest of so many processes at once, each with a smaller graph of its own."""
    run.say(f"{workers} processes apart", 0, 0)
    sources = [{"scale": run.scale / workers, "seed": run.seed + each, "file": None} for each in range(workers)]
    with ExitStack() as stack, ThreadPoolExecutor(workers) as pool:
        processes = [stack.enter_context(Apart(PATIENCE)) for _ in sources]
        for process in processes:
            process.ask(alone, {"scale": FEW, "seed": run.seed, "file": None})
        kept = list(pool.map(lambda process, source: process.ask(alone, source), processes, sources))
    found = {task: max(each[task] for each in kept) for task in TASKS}
    run.record(f"{workers} processes, nothing exchanged, elapsed", **{f"{task}_s": found[task] for task in TASKS})
    return found


def alone(source: dict[str, Any]) -> Seconds:
    """Wall seconds of each task on one worker: the least of some times."""
    kept: list[Tasks] = []
    for _ in range(REPEATS):
        with opened(1) as db:
            kept.append(Tasks(db))
            kept[-1].perform(int(graph_of(**source)[1][:, 0].min()), source)
    return {task: min(each.wall[task] for each in kept) for task in TASKS}


class Tasks:
    """The tasks in the order of the papers, each on the indexes that are there by then."""

    def __init__(self, db: Database, prefix: str = "") -> None:
        self.db = db
        self.edges = db.input(f"{prefix}edges", src=int, dst=int)
        self.roots = db.input(f"{prefix}roots", node=int)
        self.wall: Seconds = {}
        self.cpu: Seconds = {}
        self.answers: dict[str, Any] = {}

    def perform(self, root: int, source: dict[str, Any]) -> None:
        """Each on its clock; nothing stays."""
        self.edges.insert_made(share_of_edges, **source)
        forward = self.measure("index-f", lambda: index(self.db, self.edges, "src"))
        self.roots.insert([(root,)])
        self.db.advance()
        self.answers["reach"] = self.measure("reach", lambda: answer(self.db, reach(self.edges, self.roots)))
        self.answers["sssp"] = self.measure("sssp", lambda: answer(self.db, bfs(self.edges, self.roots)))
        backward = self.measure("index-r", lambda: index(self.db, self.edges, "dst"))
        self.answers["wcc"] = self.measure("wcc", lambda: answer(self.db, wcc(self.edges)))
        for held in (forward, backward):
            held.release()
        for relation in (self.edges, self.roots):
            relation.drop()

    def measure(self, task: str, work: Callable[[], Any]) -> Any:
        """What some work returns; how long it took is kept."""
        began, cpu_began = time.perf_counter(), time.process_time()
        found = work()
        self.wall[task], self.cpu[task] = time.perf_counter() - began, time.process_time() - cpu_began
        return found


def agree(run: Run, answers: dict[str, Any], expected: Expected) -> None:
    """Stop if an answer is not what the baselines say."""
    there = np.flatnonzero(expected.distances >= 0)
    run.check(np.array_equal(np.sort(answers["reach"]["node"].to_numpy()), there), "the nodes reached")
    far, least = (answers[task].sort_by("node") for task in ("sssp", "wcc"))
    run.check(np.array_equal(far["node"].to_numpy(), there), "the nodes with a distance")
    run.check(np.array_equal(far["distance"].to_numpy(), expected.distances[there]), "the distances")
    run.check(np.array_equal(least["node"].to_numpy(), expected.touched), "the nodes with a component")
    components = expected.components[expected.touched]
    run.check(np.array_equal(least["component"].to_numpy(), components), "the components")


def index(db: Database, edges: Input, column: str) -> Any:
    """Index the edges by a column, first loading them if they are new."""
    made = edges.arrange(column)
    db.advance()
    return made


def answer(db: Database, collection: Collection) -> Any:
    """Install, take the first answer as a table, let go."""
    with collection.output("answer", keep=False) as output:
        db.advance()
        return output.take_changes().to_arrow()


EXPERIMENT = Experiment(
    id="X22",
    title="batch graph processing",
    paper="Shared Arrangements, figures 11 and 14 to 16",
    claim="Behind programs for one purpose on arrays, level with hash maps at two to four cores, ahead of the systems.",
    size=f"a tenth of livejournal: {LIVEJOURNAL[0] // 10:,} nodes, {LIVEJOURNAL[1] // 10:,} edges (--scale 10: all)",
    printed=(
        Printed("livejournal, 1 worker", "index-f 4.39 s, reach 8.50 s, sssp 13.14 s, index-r 7.56 s, wcc 23.97 s"),
        Printed("livejournal, 32 workers", "0.55 s, 0.51 s, 0.59 s, 0.41 s, 0.90 s"),
        Printed("livejournal, one thread, arrays", "reach 0.40 s, wcc 0.29 s"),
        Printed("livejournal, one thread, hash map", "reach 4.38 s, wcc 8.90 s"),
        Printed("orkut, 1 worker", "index-f 14.02 s, reach 20.33 s, sssp 24.65 s, index-r 21.27 s, wcc 47.79 s"),
        Printed("twitter, BigDatalog", "reach 125 s, sssp 260 s, wcc 307 s", "120 cores"),
    ),
    memory=lambda scale: int(3.5e9 * scale + 5e8),
    run=run,
    bars=(at_most("worst_times_hash_map", 1), at_least("two_workers_times_faster", 1.6)),
    peers=("scipy", "networkx"),
    reads=snap(6_800_000),
)

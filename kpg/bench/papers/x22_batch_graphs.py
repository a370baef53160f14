"""X22: how long do indexes, reachability, distances and components of a graph take, from an empty db to the answer?

On a graph with the skew of livejournal, or one from a file (`--data`). Beside kpg: single-purpose programs on one
thread, with arrays and with hash maps for the state of nodes (as in the papers, packing their graph is not on their
clock; it is a row of its own), SciPy, and networkx if the graph is small enough for it.

With several workers, as in the papers, each has its share of the edges before the clock starts; inserting the rows on
one worker is not on the clock either. The maximum of this machine is measured, too: as many processes at the same time
without exchange, each with a proportionally smaller graph of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from kpg.api.collection import Collection
from kpg.api.contracts import Database, Input
from kpg.bench.baselines import array_graphs, hash_map_graphs
from kpg.bench.data import file_graphs
from kpg.bench.data.graphs import LIVEJOURNAL, Ints, livejournal_like
from kpg.bench.experiment import Experiment, PaperFigure, at_least, at_most, snap
from kpg.bench.peers import scipy_graphs
from kpg.bench.peers.peer_process import PeerProcess
from kpg.bench.rolling_keys import in_words, worker_counts
from kpg.bench.run import Run
from kpg.bench.warm_workers import wait_for_made_rows, warm_database
from kpg.graphs.bfs import bfs
from kpg.graphs.reach import reach
from kpg.graphs.wcc import wcc

LIVEJOURNAL_SHARE = 0.1  # at scale 1
TASKS = ("index-f", "reach", "sssp", "index-r", "wcc")
NETWORKX_EDGES = 1_000_000
REPEATS = 2
PEER_TIMEOUT_SECONDS = 3600.0  # for processes of kpg alone
REHEARSAL_SCALE = 0.005  # of what each db does first, so that its workers have loaded their code


@dataclass(frozen=True, slots=True)
class RootedGraph:
    """Edges, and the root of reach and sssp: the first node with an outgoing edge."""

    nodes: int
    edges: Ints
    root: int


def run(run: Run) -> None:
    """Measure baselines, peers, then kpg on one worker and on more; all answers must agree."""
    graph = rooted_graph(run)
    run.note(f"{graph.nodes:,} nodes, {len(graph.edges):,} edges")
    expected = baselines(run, graph)
    run.ask("scipy", lambda: ask_scipy(run, graph, expected))
    if len(graph.edges) <= NETWORKX_EDGES:
        run.ask("networkx", lambda: ask_networkx(run, graph, expected))
    walls, cpus = [], []
    for workers in worker_counts(run):
        wall, cpu = kpg_seconds(run, graph, expected, workers)
        walls.append(wall)
        cpus.append(cpu)
        if workers > 1 and run.data is None:
            best = sum(walls[0].values()) / sum(isolated_seconds(run, workers).values())
            run.figure(f"{workers}_processes_that_exchange_nothing_times_faster", best)
    rows = {row["case"]: row for row in run.result.rows}
    for task in ("reach", "sssp", "wcc"):
        run.figure(f"{task}_times_hash_map", cpus[0][task] / rows["one thread, hash map"][f"{task}_s"])
    worst = max(run.result.figures[f"{task}_times_hash_map"] for task in ("reach", "sssp", "wcc"))
    run.figure("worst_times_hash_map", worst)
    two = walls[min(1, len(walls) - 1)]
    run.figure("two_workers_times_faster", sum(walls[0].values()) / sum(two.values()))
    run.figure("slowest_task_of_two_workers_by_one", max(two[task] / walls[0][task] for task in TASKS))


def rooted_graph(run: Run) -> RootedGraph:
    """Return the graph of the file, or one like livejournal."""
    run.progress("generating the graph", 0, 0)
    nodes, edges = graph_of(**source_of(run))
    return RootedGraph(nodes, edges, int(edges[:, 0].min()))


def source_of(run: Run) -> dict[str, Any]:
    """Return the arguments of `graph_of`, which workers receive."""
    return {"scale": run.scale, "seed": run.seed, "file": None if run.data is None else str(run.data)}


def graph_of(scale: float, seed: int, file: str | None) -> tuple[int, Ints]:
    """Return the number of nodes, and the edges."""
    if file is None:
        return livejournal_like(LIVEJOURNAL_SHARE * scale, seed)
    return file_graphs.read_graph(Path(file))


@lru_cache(maxsize=1)
def share_of_edges(worker: int, workers: int, scale: float, seed: int, file: str | None) -> dict[str, Ints]:
    """Return a worker's share of the edges, created in the worker once for all repetitions."""
    _, edges = graph_of(scale, seed, file)
    share = edges[worker::workers]
    return {"src": np.ascontiguousarray(share[:, 0]), "dst": np.ascontiguousarray(share[:, 1])}


@dataclass(frozen=True, slots=True)
class ExpectedGraphAnswers:
    """The expected answers."""

    distances: Ints  # -1: not reached
    components: Ints  # the least node of each node's component
    ends: Ints  # the nodes with an edge


def baselines(run: Run, graph: RootedGraph) -> ExpectedGraphAnswers:
    """Measure the single-threaded programs and return their answers, which must agree."""
    sources, targets = (np.ascontiguousarray(graph.edges[:, side]) for side in (0, 1))
    (starts, successors), packing = timed(lambda: array_graphs.forward(sources, targets, graph.nodes))
    for repeat in range(2):  # the first time compiles
        far, reach_seconds = timed(lambda: array_graphs.distances(starts, successors, graph.nodes, graph.root))
        least, wcc_seconds = timed(lambda: array_graphs.components(sources, targets, graph.nodes))
        (nodes, hash_far), hash_reach = timed(
            lambda: hash_map_graphs.distances(starts, successors, graph.nodes, graph.root)
        )
        (hash_ends, labels), hash_wcc = timed(lambda: hash_map_graphs.components(sources, targets))
        run.progress("baselines", repeat, 2)
    ends = np.unique(graph.edges)
    run.check((far[nodes] == hash_far).all() and len(nodes) == (far >= 0).sum(), "both baselines, distances")
    run.check((least[hash_ends] == labels).all() and len(hash_ends) == len(ends), "both baselines, components")
    run.record("one thread, arrays", reach_s=reach_seconds, sssp_s=reach_seconds, wcc_s=wcc_seconds)
    run.record("one thread, hash map", reach_s=hash_reach, sssp_s=hash_reach, wcc_s=hash_wcc)
    run.record("packing the graph for these", **{"index-f_s": packing})
    return ExpectedGraphAnswers(far, least, ends)


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return the value of some work, and its CPU seconds."""
    began = time.process_time()
    value = work()
    return value, time.process_time() - began


def ask_scipy(run: Run, graph: RootedGraph, expected: ExpectedGraphAnswers) -> None:
    """Measure SciPy's compiled graph routines."""
    (far, reach_seconds), (least, wcc_seconds) = (
        scipy_graphs.distances(graph.edges, graph.nodes, graph.root),
        scipy_graphs.weak(graph.edges, graph.nodes),
    )
    run.check((far == expected.distances).all() and (least == expected.components).all(), "SciPy agrees")
    run.record("scipy", sssp_s=reach_seconds, wcc_s=wcc_seconds)


def ask_networkx(run: Run, graph: RootedGraph, expected: ExpectedGraphAnswers) -> None:
    """Measure networkx, which is written in Python."""
    import networkx

    digraph = networkx.DiGraph(graph.edges.tolist())
    far, seconds = timed(lambda: networkx.single_source_shortest_path_length(digraph, graph.root))
    distances = {node: far for node, far in enumerate(expected.distances.tolist()) if far >= 0}
    parts, wcc_seconds = timed(lambda: list(networkx.weakly_connected_components(digraph)))
    least = {node: min(part) for part in parts for node in part}
    components = expected.components[expected.ends].tolist()
    run.check(far == distances, "networkx agrees on distances")
    run.check(least == dict(zip(expected.ends.tolist(), components, strict=True)), "networkx agrees on components")
    run.record("networkx", sssp_s=seconds, wcc_s=wcc_seconds)


Seconds = dict[str, float]  # by task


def kpg_seconds(run: Run, graph: RootedGraph, expected: ExpectedGraphAnswers, workers: int) -> tuple[Seconds, Seconds]:
    """Return the least wall and CPU seconds of each task, in a db that has done all tasks on a few edges before."""
    runs: list[GraphTasks] = []
    for repeat in range(REPEATS):
        run.progress(f"kpg, {in_words(workers)}", repeat, REPEATS)
        with warm_database(workers) as db:
            few: dict[str, Any] = {"scale": REHEARSAL_SCALE, "seed": run.seed, "file": None}
            GraphTasks(db, "few ").perform(int(graph_of(**few)[1][0, 0]), few)
            runs.append(GraphTasks(db))
            runs[-1].perform(graph.root, source_of(run))
            check_answers(run, runs[-1].answers, expected)
    wall = {task: min(tasks.wall[task] for tasks in runs) for task in TASKS}
    cpu = {task: min(tasks.cpu[task] for tasks in runs) for task in TASKS}
    shown = cpu if workers == 1 else wall
    run.record(
        f"kpg, {in_words(workers)}" + (", CPU" if workers == 1 else ", elapsed"),
        **{f"{task}_s": shown[task] for task in TASKS},
    )
    if workers == 1:
        run.record("kpg, 1 worker, elapsed", **{f"{task}_s": wall[task] for task in TASKS})
    return wall, cpu


def isolated_seconds(run: Run, workers: int) -> Seconds:
    """Return the wall seconds of each task in the slowest of some simultaneous processes, each with a smaller graph."""
    run.progress(f"{workers} processes without exchange", 0, 0)
    sources = [{"scale": run.scale / workers, "seed": run.seed + number, "file": None} for number in range(workers)]
    with ExitStack() as stack, ThreadPoolExecutor(workers) as pool:
        processes = [stack.enter_context(PeerProcess(PEER_TIMEOUT_SECONDS)) for _ in sources]
        for process in processes:
            process.ask(alone, {"scale": REHEARSAL_SCALE, "seed": run.seed, "file": None})
        by_process = list(pool.map(lambda process, source: process.ask(alone, source), processes, sources))
    slowest = {task: max(seconds[task] for seconds in by_process) for task in TASKS}
    run.record(f"{workers} processes, nothing exchanged, elapsed", **{f"{task}_s": slowest[task] for task in TASKS})
    return slowest


def alone(source: dict[str, Any]) -> Seconds:
    """Return the least wall seconds of each task on one worker."""
    runs: list[GraphTasks] = []
    for _ in range(REPEATS):
        with warm_database(1) as db:
            runs.append(GraphTasks(db))
            runs[-1].perform(int(graph_of(**source)[1][:, 0].min()), source)
    return {task: min(tasks.wall[task] for tasks in runs) for task in TASKS}


class GraphTasks:
    """The tasks in the order of the papers, each on the indexes that exist by then."""

    def __init__(self, db: Database, prefix: str = "") -> None:
        self.db = db
        self.edges = db.input(f"{prefix}edges", src=int, dst=int)
        self.roots = db.input(f"{prefix}roots", node=int)
        self.wall: Seconds = {}
        self.cpu: Seconds = {}
        self.answers: dict[str, Any] = {}

    def perform(self, root: int, source: dict[str, Any]) -> None:
        """Run and measure each task, then drop everything."""
        self.edges.insert_made(share_of_edges, **source)
        wait_for_made_rows(self.db)
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
        """Return the value of some work, and record its seconds."""
        began, cpu_began = time.perf_counter(), time.process_time()
        value = work()
        self.wall[task], self.cpu[task] = time.perf_counter() - began, time.process_time() - cpu_began
        return value


def check_answers(run: Run, answers: dict[str, Any], expected: ExpectedGraphAnswers) -> None:
    """Check the answers against those of the baselines."""
    reached = np.flatnonzero(expected.distances >= 0)
    run.check(np.array_equal(np.sort(answers["reach"]["node"].to_numpy()), reached), "the nodes reached")
    far, least = (answers[task].sort_by("node") for task in ("sssp", "wcc"))
    run.check(np.array_equal(far["node"].to_numpy(), reached), "the nodes with a distance")
    run.check(np.array_equal(far["distance"].to_numpy(), expected.distances[reached]), "the distances")
    run.check(np.array_equal(least["node"].to_numpy(), expected.ends), "the nodes with a component")
    components = expected.components[expected.ends]
    run.check(np.array_equal(least["component"].to_numpy(), components), "the components")


def index(db: Database, edges: Input, column: str) -> Any:
    """Index the edges by a column; the first index loads them."""
    arrangement = edges.arrange(column)
    db.advance()
    return arrangement


def answer(db: Database, collection: Collection) -> Any:
    """Install a query, return its first answer as a table, and release it."""
    with collection.output("answer", keep=False) as output:
        db.advance()
        return output.take_changes().to_arrow()


EXPERIMENT = Experiment(
    id="X22",
    title="batch graph processing",
    paper="Shared Arrangements, figures 11 and 14 to 16",
    claim="Slower than programs on arrays, as fast as hash maps with two to four cores, faster than other systems.",
    size=f"a tenth of livejournal: {LIVEJOURNAL[0] // 10:,} nodes, {LIVEJOURNAL[1] // 10:,} edges (--scale 10: all)",
    printed=(
        PaperFigure("livejournal, 1 worker", "index-f 4.39 s, reach 8.50 s, sssp 13.14 s, index-r 7.56 s, wcc 23.97 s"),
        PaperFigure("livejournal, 32 workers", "0.55 s, 0.51 s, 0.59 s, 0.41 s, 0.90 s"),
        PaperFigure("livejournal, one thread, arrays", "reach 0.40 s, wcc 0.29 s"),
        PaperFigure("livejournal, one thread, hash map", "reach 4.38 s, wcc 8.90 s"),
        PaperFigure("orkut, 1 worker", "index-f 14.02 s, reach 20.33 s, sssp 24.65 s, index-r 21.27 s, wcc 47.79 s"),
        PaperFigure("twitter, BigDatalog", "reach 125 s, sssp 260 s, wcc 307 s", "120 cores"),
    ),
    memory=lambda scale: int(3.5e9 * scale + 5e8),
    run=run,
    limits=(
        at_most("worst_times_hash_map", 1),
        at_least("two_workers_times_faster", 1.4),  # at scale 4
        at_most("slowest_task_of_two_workers_by_one", 1),
    ),
    peers=("scipy", "networkx"),
    reads=snap(6_800_000),
)

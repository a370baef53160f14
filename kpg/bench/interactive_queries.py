"""Four classes of questions about a changing graph. A question is a row of an input: asking is inserting.

    look-up    (node)        its value                      nodes(id, value)
    one-hop    (node)        the targets of its edges       edges by src
    two-hop    (node)        the targets of their edges     edges by src, twice
    four-path  (src, dst)    the length of the shortest path, if at most 4: two hops from each end that meet
                                                            edges by src twice, by dst twice

Shared, all classes read two arrangements of the edges. Not shared, each read has an arrangement of its own. Edges and
questions roll: the newest enter, the oldest leave, so the number of both stays constant.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kpg.api.collection import Collection
from kpg.api.contracts import Database, Input, Output
from kpg.bench.data.file_graphs import read_graph
from kpg.bench.data.graphs import Ints
from kpg.bench.measure import array_bytes, settle
from kpg.bench.open_loop import TICK_SECONDS, ServedLoad, open_loop
from kpg.bench.run import Run
from kpg.columns.functions import col, lit
from kpg.opening import open as open_database

CLASSES = ("look-up", "one-hop", "two-hop", "four-path")
NODES, EDGES = 1_000_000, 6_400_000  # a tenth of the paper's graph
HELD_QUESTIONS = 1_000  # of each class at a time
FACTOR = 3  # the value of a node is its number times this
MEMORY_SAMPLES = 100
FULL_LOAD_SCALE = 0.01  # the smallest graph that bears the whole load

Row = tuple[int, ...]
AskedPairs = dict[str, list[list[int]]]  # questions (a, b) by class


@dataclass(frozen=True, slots=True)
class GraphStream:
    """All edges and questions in their order. After n steps the present ones are those from n on."""

    nodes: int
    edges: Ints
    held_edges: int
    questions: dict[str, Ints]  # int64[n, 2]; only four-path uses the second column
    held: int


@dataclass(frozen=True, slots=True)
class InstalledQuestions:
    """The inputs and answers of a db."""

    edges: Input
    nodes: Input
    questions: dict[str, Input]
    answers: dict[str, Output]


def stream(run: Run, edge_steps: int, question_steps: int, graph: float = 1.0) -> GraphStream:
    """Return a random graph of the run's scale with its future changes; `question_steps` is for each class.

    A graph from a file arrives in an order that depends on the seed, and its later edges are edges of the file again.
    """
    nodes, count = run.size(round(NODES * graph), least=50), run.size(round(EDGES * graph), least=320)
    held = run.size(HELD_QUESTIONS, least=10)
    random = np.random.default_rng(run.seed)
    if run.data is not None:
        nodes, file_edges = read_graph(run.data)
        count = len(file_edges)
        edges = file_edges[np.concatenate([random.permutation(count), random.integers(0, count, edge_steps)])]
    else:
        edges = random.integers(0, nodes, (count + edge_steps, 2))
    questions = {name: random.integers(0, nodes, (held + question_steps, 2)) for name in CLASSES}
    return GraphStream(nodes, edges, count, questions, held)


def install(db: Database, stream: GraphStream, share: bool) -> InstalledQuestions:
    """Install all classes of questions and load the graph."""
    edges, nodes = db.input("edges", src=int, dst=int), db.input("nodes", id=int, value=int)
    questions = {name: db.input(name, node=int) for name in CLASSES[:3]}
    questions["four-path"] = db.input("four-path", src=int, dst=int)
    indexes = EdgeIndexes(edges, share)
    answers = {
        "look-up": nodes.join(questions["look-up"], on={"id": "node"}).select("node", "value"),
        "one-hop": one_hop(questions["one-hop"], indexes.by_src),
        "two-hop": two_hop(questions["two-hop"], indexes.by_src),
        "four-path": four_path(questions["four-path"], indexes.by_src, indexes.by_dst),
    }
    outputs = {name: answer.output(f"{name} answers") for name, answer in answers.items()}
    numbers = np.arange(stream.nodes)
    nodes.insert(np.stack([numbers, FACTOR * numbers], axis=1))
    edges.insert(stream.edges[: stream.held_edges])
    db.advance()
    settle(db)
    return InstalledQuestions(edges, nodes, questions, outputs)


class EdgeIndexes:
    """The edges, to be read by src or by dst: one index for all readers, or another for each."""

    def __init__(self, edges: Input, share: bool) -> None:
        self.edges = edges
        self.share = share
        self.numbers = itertools.count(1)
        if share:
            self.forward, self.backward = edges.arrange("src"), edges.arrange("dst")

    def by_src(self) -> Collection:
        """Return the edges, to be joined by src."""
        return self.forward if self.share else self._copy()

    def by_dst(self) -> Collection:
        """Return the edges, to be joined by dst."""
        return self.backward if self.share else self._copy()

    def _copy(self) -> Collection:
        number = next(self.numbers)
        return self.edges.select(src=col("src") + lit(number) - lit(number), dst=col("dst"))


ReadEdges = Callable[[], Collection]


def one_hop(questions: Collection, by_src: ReadEdges) -> Collection:
    """Return (node, to)."""
    return by_src().join(questions, on={"src": "node"}).select(node=col("src"), to=col("dst"))


def two_hop(questions: Collection, by_src: ReadEdges) -> Collection:
    """Return (node, to), once for each way."""
    return by_src().join(one_hop(questions, by_src), on={"src": "to"}).select(node=col("node"), to=col("dst"))


def four_path(questions: Collection, by_src: ReadEdges, by_dst: ReadEdges) -> Collection:
    """Return (src, dst, length): two hops from each end, where they meet."""
    pairs = questions.distinct()
    ahead = hops(pairs.select("src", "dst", at=col("src"), steps=lit(0)), by_src, "src", "dst")
    behind = hops(pairs.select("src", "dst", at=col("dst"), steps=lit(0)), by_dst, "dst", "src")
    met = ahead.join(behind, on=["src", "dst", "at"])
    lengths = met.select("src", "dst", length=col("steps") + col("steps_right"))
    return lengths.group_by("src", "dst").min("length")


def hops(start: Collection, edges: ReadEdges, begin: str, end: str) -> Collection:
    """Return the nodes that zero, one and two edges lead to, with the number of edges.

    A node may occur with several numbers; the caller takes the minimum.
    """
    reached, parts = start, [start]
    for _ in range(2):
        onward = reached.rename(src="a", dst="b").join(edges(), on={"at": begin})
        reached = onward.select(src=col("a"), dst=col("b"), at=col(end), steps=col("steps") + 1)
        parts.append(reached)
    return parts[0].concat(*parts[1:])


@dataclass(slots=True)
class StreamPosition:
    """The number of edges and of questions of each class that have left."""

    edges: int = 0
    questions: int = 0

    def roll(self, installed: InstalledQuestions, stream: GraphStream, edges: int, questions: int) -> None:
        """Insert new edges and questions of each class, and remove as many old ones."""
        first, last, size = self.edges, self.edges + edges, stream.held_edges
        if edges:
            installed.edges.insert(stream.edges[size + first : size + last])
            installed.edges.remove(stream.edges[first:last])
        start, stop, held = self.questions, self.questions + questions, stream.held
        if questions:
            for name, rows in stream.questions.items():
                ask(installed, name, rows[held + start : held + stop], rows[start:stop])
        self.edges, self.questions = last, stop

    def begin(self, installed: InstalledQuestions, stream: GraphStream) -> None:
        """Ask the first questions."""
        for name, rows in stream.questions.items():
            ask(installed, name, rows[: stream.held], None)


def ask(installed: InstalledQuestions, name: str, rows: Ints, removed: Ints | None) -> None:
    """Insert questions, and remove others."""
    columns = slice(None) if name == "four-path" else slice(1)
    installed.questions[name].insert(np.ascontiguousarray(rows[:, columns]))
    if removed is not None:
        installed.questions[name].remove(np.ascontiguousarray(removed[:, columns]))


@dataclass(frozen=True, slots=True)
class LoadResult:
    """The latencies of a load, and the memory while it was served."""

    served: ServedLoad
    memory: list[tuple[float, float]]  # seconds, bytes of all arrays


def serve(
    run: Run,
    share: bool,
    edges_per_second: float,
    questions_per_second: float,
    seconds: float,
    graph: float = 1.0,
) -> LoadResult:
    """Offer changes of edges and questions, where a removal counts as an update, and check the answers at the end."""
    share_of_load = min(1.0, run.scale / FULL_LOAD_SCALE)
    edges_per_second, questions_per_second = share_of_load * edges_per_second, share_of_load * questions_per_second
    ticks = max(10, round(seconds / TICK_SECONDS))
    half_seconds = np.arange(ticks + 1) * TICK_SECONDS / 2
    edge_steps = np.round(half_seconds * edges_per_second).astype(np.int64)
    question_steps = np.round(half_seconds * questions_per_second / len(CLASSES)).astype(np.int64)
    rows = stream(run, int(edge_steps[-1]), int(question_steps[-1]), graph)
    position = StreamPosition()
    memory: list[tuple[float, float]] = []
    with open_database() as db:
        installed = install(db, rows, share)
        position.begin(installed, rows)
        db.advance()

        def work(first: int, last: int) -> None:
            edges = int(edge_steps[last] - edge_steps[first])
            position.roll(installed, rows, edges, int(question_steps[last] - question_steps[first]))
            db.advance()
            if len(memory) * ticks <= last * MEMORY_SAMPLES:
                memory.append((last * TICK_SECONDS, float(array_bytes(db))))

        served = open_loop(work, ticks)
        check(run, installed, rows, position)
    return LoadResult(served, memory)


def check(run: Run, installed: InstalledQuestions, stream: GraphStream, position: StreamPosition) -> None:
    """Check all answers of the present questions."""
    run.progress("checking", 0, 0)
    edges = stream.edges[position.edges : position.edges + stream.held_edges]
    first, last = position.questions, position.questions + stream.held
    asked = {name: rows[first:last].tolist() for name, rows in stream.questions.items()}
    for name, rows in expected_answers(edges, asked).items():
        run.check(sorted(installed.answers[name].rows()) == sorted(rows), f"the answers of {name}")


def expected_answers(edges: Ints, asked: AskedPairs) -> dict[str, list[Row]]:
    """Return the answers of questions by NumPy and dicts. A four-path is answered once for each distinct pair."""
    ahead, behind = Neighbours(edges), Neighbours(edges[:, ::-1])
    pairs = {(a, b) for a, b in asked["four-path"]}
    return {
        "look-up": [(a, FACTOR * a) for a, _ in asked["look-up"]],
        "one-hop": [(a, to) for a, _ in asked["one-hop"] for to in ahead.of(a)],
        "two-hop": [(a, to) for a, _ in asked["two-hop"] for by in ahead.of(a) for to in ahead.of(by)],
        "four-path": [(a, b, far) for a, b in pairs if (far := path_length(ahead, behind, a, b)) >= 0],
    }


class Neighbours:
    """The targets of edges by source."""

    def __init__(self, edges: Ints) -> None:
        order = np.argsort(edges[:, 0], kind="stable")
        self.sources, self.targets = edges[order, 0], edges[order, 1]

    def of(self, node: int) -> list[int]:
        """Return the targets of a node's edges, with repetitions."""
        first, last = np.searchsorted(self.sources, [node, node + 1])
        return [int(target) for target in self.targets[first:last]]


def path_length(ahead: Neighbours, behind: Neighbours, begin: int, end: int) -> int:
    """Return the length of the shortest path if it is at most 4; else -1."""
    from_begin, from_end = two_steps(ahead, begin), two_steps(behind, end)
    return min((far + from_end[node] for node, far in from_begin.items() if node in from_end), default=-1)


def two_steps(graph: Neighbours, node: int) -> dict[int, int]:
    """Return the nodes at most two steps away, with their distance."""
    near = graph.of(node)
    far = {target: 2 for neighbour in near for target in graph.of(neighbour)}
    return {**far, **dict.fromkeys(near, 1), node: 0}

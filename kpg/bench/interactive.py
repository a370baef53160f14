"""Four classes of questions about a changing graph, each question a row of an input: asking is inserting.

    look-up    (node)        its value                      nodes(id, value)
    one-hop    (node)        where its edges lead           edges by src
    two-hop    (node)        where their edges lead         edges by src, twice
    four-path  (src, dst)    the length of the shortest path, if at most 4: two hops from each end that meet
                                                            edges by src twice, by dst twice

Shared, all read two arrangements of the edges. Not shared, each reading has one of its own. Edges and questions roll:
the newest come, the oldest go, so that both stay as many.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kpg.api.collection import Collection
from kpg.api.contracts import Database, Input, Output
from kpg.api.embedded_database import EmbeddedDatabase
from kpg.bench.data.given import graph as graph_of
from kpg.bench.data.graphs import Ints
from kpg.bench.load import TICK_SECONDS, Served, open_loop
from kpg.bench.run import Run
from kpg.columns.functions import col, lit
from kpg.opening import open as open_database

CLASSES = ("look-up", "one-hop", "two-hop", "four-path")
NODES, EDGES = 1_000_000, 6_400_000  # a tenth of the paper's graph
HELD = 1_000  # questions of each class that are installed at a time
FACTOR = 3  # the value of a node is so many times its number
SAMPLES = 100  # of memory


@dataclass(frozen=True, slots=True)
class Stream:
    """All that will ever come, in its order: what is there after n steps are the rows from n on."""

    nodes: int
    edges: Ints
    held_edges: int
    questions: dict[str, Ints]  # int64[n, 2]; only four-path uses the second
    held: int


@dataclass(frozen=True, slots=True)
class Installed:
    """The inputs and answers of a db."""

    edges: Input
    nodes: Input
    questions: dict[str, Input]
    answers: dict[str, Output]


def stream(run: Run, edge_steps: int, question_steps: int, graph: float = 1.0) -> Stream:
    """A random graph of the scale of a run, and what will happen to it; question steps are for each class.

    A graph of a file comes in an order by the seed, and what comes later are edges of it again.
    """
    nodes, count = run.size(round(NODES * graph), least=50), run.size(round(EDGES * graph), least=320)
    held = run.size(HELD, least=10)
    random = np.random.default_rng(run.seed)
    if run.data is not None:
        nodes, given = graph_of(run.data)
        count = len(given)
        edges = given[np.concatenate([random.permutation(count), random.integers(0, count, edge_steps)])]
    else:
        edges = random.integers(0, nodes, (count + edge_steps, 2))
    asked = {each: random.integers(0, nodes, (held + question_steps, 2)) for each in CLASSES}
    return Stream(nodes, edges, count, asked, held)


def install(db: Database, stream: Stream, share: bool) -> Installed:
    """Describe everything and load the graph."""
    edges, nodes = db.input("edges", src=int, dst=int), db.input("nodes", id=int, value=int)
    questions = {each: db.input(each, node=int) for each in CLASSES[:3]}
    questions["four-path"] = db.input("four-path", src=int, dst=int)
    uses = Uses(edges, share)
    answers = {
        "look-up": nodes.join(questions["look-up"], on={"id": "node"}).select("node", "value"),
        "one-hop": one_hop(questions["one-hop"], uses.by_src),
        "two-hop": two_hop(questions["two-hop"], uses.by_src),
        "four-path": four_path(questions["four-path"], uses.by_src, uses.by_dst),
    }
    outputs = {name: answer.output(f"{name} answers") for name, answer in answers.items()}
    numbers = np.arange(stream.nodes)
    nodes.insert(np.stack([numbers, FACTOR * numbers], axis=1))
    edges.insert(stream.edges[: stream.held_edges])
    db.advance()
    db.advance()
    while db.idle(10_000_000):
        pass
    return Installed(edges, nodes, questions, outputs)


class Uses:
    """The edges, to be read by src or by dst: the same index for all, or another for each."""

    def __init__(self, edges: Input, share: bool) -> None:
        self.edges = edges
        self.share = share
        self.numbers = itertools.count(1)
        if share:
            self.forward, self.backward = edges.arrange("src"), edges.arrange("dst")

    def by_src(self) -> Collection:
        """To be joined by src."""
        return self.forward if self.share else self._copy()

    def by_dst(self) -> Collection:
        """To be joined by dst."""
        return self.backward if self.share else self._copy()

    def _copy(self) -> Collection:
        number = next(self.numbers)
        return self.edges.select(src=col("src") + lit(number) - lit(number), dst=col("dst"))


Use = Callable[[], Collection]


def one_hop(asked: Collection, by_src: Use) -> Collection:
    """(node, to)"""
    return by_src().join(asked, on={"src": "node"}).select(node=col("src"), to=col("dst"))


def two_hop(asked: Collection, by_src: Use) -> Collection:
    """(node, to), as often as there are ways"""
    return by_src().join(one_hop(asked, by_src), on={"src": "to"}).select(node=col("node"), to=col("dst"))


def four_path(asked: Collection, by_src: Use, by_dst: Use) -> Collection:
    """(src, dst, length): two hops from each end, where they meet."""
    pairs = asked.distinct()
    ahead = hops(pairs.select("src", "dst", at=col("src"), steps=lit(0)), by_src, "src", "dst")
    behind = hops(pairs.select("src", "dst", at=col("dst"), steps=lit(0)), by_dst, "dst", "src")
    met = ahead.join(behind, on=["src", "dst", "at"])
    lengths = met.select("src", "dst", length=col("steps") + col("steps_right"))
    return lengths.group_by("src", "dst").min("length")


def hops(start: Collection, edges: Use, begin: str, end: str) -> Collection:
    """Where none, one and two edges lead, with how many; some in several ways, of which the least counts in the end."""
    known, parts = start, [start]
    for _ in range(2):
        onward = known.rename(src="a", dst="b").join(edges(), on={"at": begin})
        known = onward.select(src=col("a"), dst=col("b"), at=col(end), steps=col("steps") + 1)
        parts.append(known)
    return parts[0].concat(*parts[1:])


@dataclass(slots=True)
class Rolled:
    """How far the stream has gone."""

    edges: int = 0
    questions: int = 0

    def roll(self, installed: Installed, stream: Stream, edges: int, questions: int) -> None:
        """So many edges come and go, and so many questions of each class."""
        first, last, size = self.edges, self.edges + edges, stream.held_edges
        if edges:
            installed.edges.insert(stream.edges[size + first : size + last])
            installed.edges.remove(stream.edges[first:last])
        start, stop, held = self.questions, self.questions + questions, stream.held
        if questions:
            for name, rows in stream.questions.items():
                ask(installed, name, rows[held + start : held + stop], rows[start:stop])
        self.edges, self.questions = last, stop

    def begin(self, installed: Installed, stream: Stream) -> None:
        """Ask the questions that are held at the start."""
        for name, rows in stream.questions.items():
            ask(installed, name, rows[: stream.held], None)


def ask(installed: Installed, name: str, rows: Ints, gone: Ints | None) -> None:
    """Questions come, others go."""
    columns = slice(None) if name == "four-path" else slice(1)
    installed.questions[name].insert(np.ascontiguousarray(rows[:, columns]))
    if gone is not None:
        installed.questions[name].remove(np.ascontiguousarray(gone[:, columns]))


@dataclass(frozen=True, slots=True)
class Kept:
    """What serving a load came to."""

    served: Served
    memory: list[tuple[float, float]]  # seconds, bytes of all arrays


def serve(
    run: Run,
    share: bool,
    edges_per_second: float,
    questions_per_second: float,
    seconds: float,
    graph: float = 1.0,
) -> Kept:
    """Offer changes of edges and questions; a removal is an update too. The answers are checked at the end."""
    share_of_load = min(1.0, 100 * run.scale)  # a hundredth of the graph bears all of it
    edges_per_second, questions_per_second = share_of_load * edges_per_second, share_of_load * questions_per_second
    ticks = max(10, round(seconds / TICK_SECONDS))
    at = np.arange(ticks + 1) * TICK_SECONDS / 2
    edge_steps = np.round(at * edges_per_second).astype(np.int64)
    question_steps = np.round(at * questions_per_second / len(CLASSES)).astype(np.int64)
    made = stream(run, int(edge_steps[-1]), int(question_steps[-1]), graph)
    rolled = Rolled()
    memory: list[tuple[float, float]] = []
    with open_database() as db:
        installed = install(db, made, share)
        rolled.begin(installed, made)
        db.advance()

        def work(first: int, last: int) -> None:
            edges = int(edge_steps[last] - edge_steps[first])
            rolled.roll(installed, made, edges, int(question_steps[last] - question_steps[first]))
            db.advance()
            assert isinstance(db, EmbeddedDatabase)
            if len(memory) * ticks <= last * SAMPLES:
                memory.append((last * TICK_SECONDS, float(sum(spine.nbytes for spine in db.spines()))))

        served = open_loop(work, ticks)
        check(run, installed, made, rolled)
    return Kept(served, memory)


def check(run: Run, installed: Installed, stream: Stream, rolled: Rolled) -> None:
    """All answers to the questions that are installed, by NumPy and dicts."""
    run.say("checking", 0, 0)
    edges = stream.edges[rolled.edges : rolled.edges + stream.held_edges]
    ahead, behind = Neighbours(edges), Neighbours(edges[:, ::-1])
    first, last = rolled.questions, rolled.questions + stream.held
    asked = {name: rows[first:last].tolist() for name, rows in stream.questions.items()}
    expected: dict[str, list[tuple[int, ...]]] = {
        "look-up": [(a, FACTOR * a) for a, _ in asked["look-up"]],
        "one-hop": [(a, to) for a, _ in asked["one-hop"] for to in ahead.of(a)],
        "two-hop": [(a, to) for a, _ in asked["two-hop"] for by in ahead.of(a) for to in ahead.of(by)],
        "four-path": [
            (a, b, far) for a, b in {(a, b) for a, b in asked["four-path"]} if (far := length(ahead, behind, a, b)) >= 0
        ],
    }
    for name, rows in expected.items():
        run.check(sorted(installed.answers[name].rows()) == sorted(rows), f"the answers of {name}")


class Neighbours:
    """Where the edges of a node lead."""

    def __init__(self, edges: Ints) -> None:
        order = np.argsort(edges[:, 0], kind="stable")
        self.begins, self.ends = edges[order, 0], edges[order, 1]

    def of(self, node: int) -> list[int]:
        """As often as there are edges."""
        first, last = np.searchsorted(self.begins, [node, node + 1])
        return [int(each) for each in self.ends[first:last]]


def length(ahead: Neighbours, behind: Neighbours, begin: int, end: int) -> int:
    """Of the shortest path, if it is at most 4; else -1."""
    one, other = steps(ahead, begin), steps(behind, end)
    return min((far + other[node] for node, far in one.items() if node in other), default=-1)


def steps(graph: Neighbours, node: int) -> dict[int, int]:
    """What is at most two steps away, and how far."""
    near = graph.of(node)
    found = {further: 2 for each in near for further in graph.of(each)}
    return {**found, **dict.fromkeys(near, 1), node: 0}

"""Which places of a dataflow can reach which, and how times change on the way.

A *location* is a place where a message or a capability can be: an input of an operator, or its output. Edges carry a
summary. `paths_to(target)` gives, for each location that reaches the target, the antichain of summaries of all paths;
it exists because every cycle strictly advances time, which `check_cycles` verifies.

Paths are searched on demand and remembered: a small query asks for few targets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from kpg.algebra.order import Time
from kpg.errors import BadPlan
from kpg.progress.summary import Summary, compiled, identity

Paths = dict[int, tuple[Summary, ...]]
Ways = dict[int, tuple[Callable[[Time], Time], ...] | None]  # None: as it is, by an identity alone


class Reachability:
    """The graph of locations of one dataflow."""

    def __init__(self) -> None:
        self.depths: list[int] = []
        self._before: list[list[tuple[int, Summary]]] = []
        self._paths: dict[int, Paths] = {}
        self._ways: dict[int, Ways] = {}

    def add_location(self, depth: int) -> int:
        """A new location whose times have `depth` coordinates."""
        self.depths.append(depth)
        self._before.append([])
        return len(self.depths) - 1

    def add_edge(self, source: int, target: int, summary: Summary) -> None:
        """Say that what is at `source` can appear at `target`, later by `summary`."""
        self._before[target].append((source, summary))
        self._paths.clear()
        self._ways.clear()

    def paths_to(self, target: int) -> Paths:
        """For each location that reaches `target`, the minimal summaries of its paths there."""
        found = self._paths.get(target)
        if found is None:
            found = self._paths[target] = self._search(target)
        return found

    def ways_to(self, target: int) -> Ways:
        """The paths to `target`, each as a function of times."""
        found = self._ways.get(target)
        if found is None:
            found = {}
            for location, summaries in self.paths_to(target).items():
                same = len(summaries) == 1 and summaries[0].keeps
                found[location] = None if same else tuple([compiled(summary) for summary in summaries])
            self._ways[target] = found
        return found

    def _search(self, target: int) -> Paths:
        paths: dict[int, list[Summary]] = {target: [identity(self.depths[target])]}
        queue = deque([(target, paths[target][0])])
        while queue:
            location, onward = queue.popleft()
            if onward not in paths[location]:
                continue  # a shorter path was found since
            for source, summary in self._before[location]:
                whole = summary.then(onward)
                if insert_minimal(paths.setdefault(source, []), whole):
                    queue.append((source, whole))
        return {location: tuple(summaries) for location, summaries in paths.items()}

    def check_cycles(self) -> None:
        """Refuse a graph with a cycle on which time does not grow."""
        visiting, done = 1, 2
        state = [0] * len(self.depths)
        for start in range(len(self.depths)):
            stack = [(start, iter(self._still_edges(start)))] if not state[start] else []
            if stack:
                state[start] = visiting
            while stack:
                location, edges = stack[-1]
                for source in edges:
                    if state[source] == visiting:
                        raise BadPlan(
                            "a cycle of the dataflow does not advance time",
                            hint="Close loops with iterate() or Variable.set(), which add a round.",
                        )
                    if not state[source]:
                        state[source] = visiting
                        stack.append((source, iter(self._still_edges(source))))
                        break
                else:
                    state[location] = done
                    stack.pop()

    def _still_edges(self, location: int) -> list[int]:
        return [source for source, summary in self._before[location] if not any(summary.add)]


def insert_minimal(antichain: list[Summary], summary: Summary) -> bool:
    """Add a summary unless one at least as early is there; drop those it makes needless."""
    if any(other.less_equal(summary) for other in antichain):
        return False
    antichain[:] = [other for other in antichain if not summary.less_equal(other)]
    antichain.append(summary)
    return True

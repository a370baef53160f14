"""Reachability between the locations of a dataflow, and how times change along the paths.

A *location* is where a message or a capability can be: an input of an operator, or its output. Each edge has a path
summary. `paths_to(target)` maps each location that reaches the target to the antichain of the summaries of all its
paths. The antichain is finite because every cycle strictly advances time; `check_cycles` verifies that.

Cost: paths are searched on demand and cached, because a small query asks for few targets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from kpg.algebra.order import Time
from kpg.errors import BadPlan
from kpg.progress.summary import Summary, as_function, identity

Paths = dict[int, tuple[Summary, ...]]
PathFunctions = dict[int, tuple[Callable[[Time], Time], ...] | None]  # None: the only path is an identity


class Reachability:
    """The graph of locations of one dataflow."""

    def __init__(self) -> None:
        self.depths: list[int] = []
        self._incoming: list[list[tuple[int, Summary]]] = []
        self._paths: dict[int, Paths] = {}
        self._functions: dict[int, PathFunctions] = {}

    def add_location(self, depth: int) -> int:
        """Add a location at which times have `depth` coordinates, and return its number."""
        self.depths.append(depth)
        self._incoming.append([])
        return len(self.depths) - 1

    def add_edge(self, source: int, target: int, summary: Summary) -> None:
        """Add an edge: a message at `source` can cause one at `target`, at a time changed by `summary`."""
        self._incoming[target].append((source, summary))
        if self._functions or self._paths:
            self._paths.clear()
            self._functions.clear()

    def paths_to(self, target: int) -> Paths:
        """Return the minimal path summaries of each location that reaches `target`."""
        paths = self._paths.get(target)
        if paths is None:
            paths = self._paths[target] = self._search(target)
        return paths

    def path_functions_to(self, target: int) -> PathFunctions:
        """Return the paths to `target`, each as a function of times."""
        functions = self._functions.get(target)
        if functions is None:
            functions = self._identities_to(target)
            if functions is None:
                functions = {}
                for location, summaries in self.paths_to(target).items():
                    same = len(summaries) == 1 and summaries[0].is_identity
                    functions[location] = None if same else tuple([as_function(summary) for summary in summaries])
            self._functions[target] = functions
        return functions

    def _identities_to(self, target: int) -> PathFunctions | None:
        """Return the paths to `target` if all edges on them are identities, as outside of loops; else None."""
        functions: PathFunctions = {target: None}
        stack = [target]
        while stack:
            for source, summary in self._incoming[stack.pop()]:
                if not summary.is_identity:
                    return None
                if source not in functions:
                    functions[source] = None
                    stack.append(source)
        return functions

    def _search(self, target: int) -> Paths:
        paths: dict[int, list[Summary]] = {target: [identity(self.depths[target])]}
        queue = deque([(target, paths[target][0])])
        while queue:
            location, onward = queue.popleft()
            if onward not in paths[location]:
                continue  # an earlier path replaced it meanwhile
            for source, summary in self._incoming[location]:
                whole = summary.then(onward)
                if insert_minimal(paths.setdefault(source, []), whole):
                    queue.append((source, whole))
        return {location: tuple(summaries) for location, summaries in paths.items()}

    def check_cycles(self) -> None:
        """Raise BadPlan if the graph has a cycle that does not advance time."""
        visiting, done = 1, 2
        state = [0] * len(self.depths)
        for start in range(len(self.depths)):
            stack = [(start, iter(self._non_advancing_sources(start)))] if not state[start] else []
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
                        stack.append((source, iter(self._non_advancing_sources(source))))
                        break
                else:
                    state[location] = done
                    stack.pop()

    def _non_advancing_sources(self, location: int) -> list[int]:
        return [source for source, summary in self._incoming[location] if not any(summary.add)]


def insert_minimal(antichain: list[Summary], summary: Summary) -> bool:
    """Add a summary to an antichain unless an element is at or before it; remove the elements after it."""
    if not antichain:  # as at nearly all locations
        antichain.append(summary)
        return True
    if any(other.less_equal(summary) for other in antichain):
        return False
    antichain[:] = [other for other in antichain if not summary.less_equal(other)]
    antichain.append(summary)
    return True

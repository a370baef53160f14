"""Reachability between the locations of a dataflow, and how times change along the paths.

A *location* is where a message or a capability can be: an input of an operator, or its output. Each edge has a path
summary. `paths_to(target)` maps each location that reaches the target to the antichain of the summaries of all its
paths. The antichain is finite because every cycle strictly advances time; `check_cycles` verifies that.

An edge *crosses* if its messages may go to other workers. A pointstamp of another worker affects this worker only
through a path that crosses (`crossing_paths_to`). A pointstamp of this worker affects others only through the *exits*:
the outputs from which an edge crosses, and the outputs that other dataflows import.

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
        self.exits: set[int] = set()  # the locations through which this worker affects others
        self._incoming: list[list[tuple[int, Summary, bool]]] = []
        self._paths: dict[int, Paths] = {}
        self._functions: dict[int, PathFunctions] = {}
        self._crossing_functions: dict[int, PathFunctions] = {}
        self._local_paths: dict[int, Paths] = {}  # of the exits
        self._covers: dict[tuple[int, int], bool] = {}

    def add_location(self, depth: int) -> int:
        """Add a location at which times have `depth` coordinates, and return its number."""
        self.depths.append(depth)
        self._incoming.append([])
        return len(self.depths) - 1

    def add_edge(self, source: int, target: int, summary: Summary, crosses: bool = False) -> None:
        """Add an edge: a message at `source` can cause one at `target`, at a time changed by `summary`.

        If the edge `crosses`, the target may be on any worker; otherwise it is on the worker of the source.
        """
        self._incoming[target].append((source, summary, crosses))
        if crosses:
            self.add_exit(source)
        if self._functions or self._paths or self._covers:
            for cache in (self._paths, self._functions, self._crossing_functions, self._local_paths, self._covers):
                cache.clear()

    def add_exit(self, location: int) -> None:
        """Note that other workers follow the frontier of an output."""
        self.exits.add(location)
        self._covers.clear()

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
                functions = path_functions(self.paths_to(target))
            self._functions[target] = functions
        return functions

    def _identities_to(self, target: int) -> PathFunctions | None:
        """Return the paths to `target` if all edges on them are identities, as outside of loops; else None."""
        functions: PathFunctions = {target: None}
        stack = [target]
        while stack:
            for source, summary, _ in self._incoming[stack.pop()]:
                if not summary.is_identity:
                    return None
                if source not in functions:
                    functions[source] = None
                    stack.append(source)
        return functions

    def crossing_paths_to(self, target: int) -> PathFunctions:
        """Return the paths to `target` that cross between workers at least once, each as a function of times."""
        functions = self._crossing_functions.get(target)
        if functions is None:
            functions = self._crossing_functions[target] = path_functions(self._search_crossing(target))
        return functions

    def covers(self, location: int, other: int) -> bool:
        """Return whether a pointstamp at `location` holds back other workers as much as one at `other`, not earlier.

        So it is if each local path from `other` to an exit has one from `location` that is at or before it.
        """
        known = self._covers.get((location, other))
        if known is None:
            known = self._covers[location, other] = self._find_cover(location, other)
        return known

    def _find_cover(self, location: int, other: int) -> bool:
        if location == other:
            return True
        if self.depths[location] != self.depths[other]:
            return False
        for target in self.exits:
            paths = self._local_paths.get(target)
            if paths is None:
                paths = self._local_paths[target] = self._search(target, local=True)
            mine = paths.get(location, ())
            if not all(any(summary.less_equal(whole) for summary in mine) for whole in paths.get(other, ())):
                return False
        return True

    def _search(self, target: int, local: bool = False) -> Paths:
        """Search all paths to a location, or only the `local` ones, which do not cross."""
        paths: dict[int, list[Summary]] = {target: [identity(self.depths[target])]}
        queue = deque([(target, paths[target][0])])
        while queue:
            location, onward = queue.popleft()
            if onward not in paths[location]:
                continue  # an earlier path replaced it meanwhile
            for source, summary, crosses in self._incoming[location]:
                if not (local and crosses):
                    whole = summary.then(onward)
                    if insert_minimal(paths.setdefault(source, []), whole):
                        queue.append((source, whole))
        return {location: tuple(summaries) for location, summaries in paths.items()}

    def _search_crossing(self, target: int) -> Paths:
        """Search the paths that cross: those of the graph with two copies of each location, before and after."""
        paths: dict[tuple[int, bool], list[Summary]] = {(target, False): [identity(self.depths[target])]}
        queue = deque([(target, False, paths[target, False][0])])
        while queue:
            location, crossed, onward = queue.popleft()
            if onward not in paths[location, crossed]:
                continue
            for source, summary, crosses in self._incoming[location]:
                whole, after = summary.then(onward), crossed or crosses
                if insert_minimal(paths.setdefault((source, after), []), whole):
                    queue.append((source, after, whole))
        return {location: tuple(summaries) for (location, crossed), summaries in paths.items() if crossed}

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
        return [source for source, summary, _ in self._incoming[location] if not any(summary.add)]


def path_functions(paths: Paths) -> PathFunctions:
    """Return paths as functions of times."""
    functions: PathFunctions = {}
    for location, summaries in paths.items():
        same = len(summaries) == 1 and summaries[0].is_identity
        functions[location] = None if same else tuple([as_function(summary) for summary in summaries])
    return functions


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

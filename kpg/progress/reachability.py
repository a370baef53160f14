"""Reachability between the locations of a dataflow, and how times change along the paths.

A *location* is where a message or a capability can be: an input of an operator, or its output. Each edge has a path
summary. `paths_to(target)` maps each location that reaches the target to the antichain of the summaries of all its
paths. The antichain is finite because every cycle strictly advances time; `check_cycles` verifies that.

An edge *crosses* if its messages may go to other workers. A pointstamp of another worker affects this worker only
through a path that crosses (`crossing_paths_to`). A pointstamp of this worker affects others only through the *exits*:
the outputs from which an edge crosses, and the outputs that other dataflows import.

Outside of loops only the epoch of a time is left at the end of a path, and paths do not change it. There it is enough
to know which locations reach the target: `reaching(target)` is two sets, as bits.

Cost: paths are searched on demand and cached, because a small query asks for few targets. The sets of all locations are
made together, in a time linear in the edges times the locations / 64.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from kpg.algebra.order import Time
from kpg.errors import BadPlan
from kpg.progress.summary import Summary, as_function, identity

Paths = dict[int, tuple[Summary, ...]]
PathFunctions = dict[int, tuple[Callable[[Time], Time], ...] | None]  # None: the only path is an identity


class Reaching(NamedTuple):
    """The locations that reach a target, and those that do so on a path that crosses: bit l stands for location l."""

    all: int
    crossing: int


class Reachability:
    """The graph of locations of one dataflow."""

    def __init__(self) -> None:
        self.depths: list[int] = []
        self.edges = 0  # the number of them
        self.exits: set[int] = set()  # the locations through which this worker affects others
        self._incoming: list[list[tuple[int, Summary, bool]]] = []
        self._paths: dict[int, Paths] = {}
        self._functions: dict[int, PathFunctions] = {}
        self._crossing_functions: dict[int, PathFunctions] = {}
        self._local_paths: dict[int, Paths] = {}  # of the exits
        self._covers: dict[tuple[int, int], bool] = {}
        self._covering: list[int] | None = None
        self._keeps_times = True  # whether no edge changes a time, as without loops
        self._keeps_epochs = True  # whether no edge changes the first coordinate of a time
        self._reaching: list[Reaching] = []  # of each location; empty if not known yet

    def add_location(self, depth: int) -> int:
        """Add a location at which times have `depth` coordinates, and return its number."""
        self.depths.append(depth)
        self._incoming.append([])
        self._reaching, self._covering = [], None
        return len(self.depths) - 1

    def add_input(self, depth: int, target: int, summary: Summary) -> int:
        """Add a location and an edge from it to `target`; return its number."""
        location = len(self.depths)
        self.depths.append(depth)
        self._incoming.append([])
        self._incoming[target].append((location, summary, False))
        self._note_edge(summary)
        return location

    def add_edge(self, source: int, target: int, summary: Summary, crosses: bool = False) -> None:
        """Add an edge: a message at `source` can cause one at `target`, at a time changed by `summary`.

        If the edge `crosses`, the target may be on any worker; otherwise it is on the worker of the source.
        """
        self._incoming[target].append((source, summary, crosses))
        if crosses:
            self.add_exit(source)
        self._note_edge(summary)

    def _note_edge(self, summary: Summary) -> None:
        self.edges += 1
        if not summary.is_identity:
            self._keeps_times = False
            self._keeps_epochs &= bool(summary.add) and not summary.add[0]
        if self._reaching or self._functions or self._paths or self._covers or self._covering is not None:
            self._forget_paths()

    def _forget_paths(self) -> None:
        for cache in (self._paths, self._functions, self._crossing_functions, self._local_paths, self._covers):
            cache.clear()
        self._covering = None
        self._reaching = []

    def add_exit(self, location: int) -> None:
        """Note that other workers follow the frontier of an output."""
        self.exits.add(location)
        self._covers.clear()
        self._covering = None

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
            functions = self._functions[target] = path_functions(self.paths_to(target))
        return functions

    def crossing_paths_to(self, target: int) -> PathFunctions:
        """Return the paths to `target` that cross between workers at least once, each as a function of times."""
        functions = self._crossing_functions.get(target)
        if functions is None:
            functions = self._crossing_functions[target] = path_functions(self._search_crossing(target))
        return functions

    def reaching(self, target: int) -> Reaching | None:
        """Return the locations that reach a target, if a time there is an epoch that all paths keep; else None."""
        if self.depths[target] != 1 or not self._keeps_epochs:
            return None
        if not self._reaching:
            self._reaching = self._find_reaching()
        return self._reaching[target]

    def reaches(self, source: int, target: int) -> bool:
        """Return whether a path leads from one location to another; each reaches itself."""
        if not self._reaching:
            self._reaching = self._find_reaching()
        return bool(self._reaching[target].all >> source & 1)

    def _find_reaching(self) -> list[Reaching]:
        """Add up the sets of the locations before each one; if there are loops, until nothing changes."""
        order, found = self._in_order(), [Reaching(1 << location, 0) for location in range(len(self.depths))]
        changed = True
        while changed:
            changed = False
            for location in order:
                reaching, crossing = before = found[location]
                for source, _, crosses in self._incoming[location]:
                    reaching |= found[source].all
                    crossing |= found[source].all if crosses else found[source].crossing
                if (reaching, crossing) != before:
                    found[location] = Reaching(reaching, crossing)
                    changed = True
            changed &= not self._keeps_times  # without loops, one visit after all that is before is enough
        return found

    def _in_order(self) -> list[int]:
        """Return all locations, each after those from which an edge leads to it, except in loops."""
        order: list[int] = []
        seen = [False] * len(self.depths)
        for start in range(len(self.depths)):
            stack = [(start, iter(self._incoming[start]))] if not seen[start] else []
            seen[start] = True
            while stack:
                location, edges = stack[-1]
                for source, _, _ in edges:
                    if not seen[source]:
                        seen[source] = True
                        stack.append((source, iter(self._incoming[source])))
                        break
                else:
                    order.append(location)
                    stack.pop()
        return order

    def covering_sets(self) -> list[int] | None:
        """Return sets of locations, as bits, that decide which pointstamps hold back others; None if times decide, too.

        Without loops no path changes a time. So pointstamps hold back other workers as much as one at a location if,
        in each of these sets with this location, one of them is. The sets are the locations that reach an exit by local
        paths, for each exit, and all locations: peers also follow whether a worker is done. (A dataflow of many rules
        has too many pairs of locations to compare them.)
        """
        if self._covering is None:
            if not self._keeps_times or any(depth != 1 for depth in self.depths):
                return None
            local = self._local_sets()
            self._covering = [(1 << len(local)) - 1, *(local[location] for location in self.exits)]
        return self._covering

    def _local_sets(self) -> list[int]:
        """Return the locations that reach each location by local paths, as bits. There are no loops."""
        found = [1 << location for location in range(len(self.depths))]
        for location in self._in_order():
            for source, _, crosses in self._incoming[location]:
                if not crosses:
                    found[location] |= found[source]
        return found

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

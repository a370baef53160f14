"""The first epoch of pointstamps at some locations, and frontiers outside of loops, which follow from it."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from kpg.algebra.frontier import Frontier
from kpg.algebra.order import Time
from kpg.progress.pointstamps import Pointstamps
from kpg.progress.reachability import Reachability
from kpg.progress.summary import enter, identity, leave, step_round
from kpg.progress.tracker import Tracker

LOCATIONS = 6


@given(st.data())
def test_the_first_epoch_is_that_of_the_counts(data: st.DataObject) -> None:
    """A1.8: whenever it is asked for, also after counts were negative or all were removed."""
    stamps, counts = Pointstamps(), defaultdict[tuple[int, Time], int](int)
    depths = data.draw(st.lists(st.integers(1, 2), min_size=LOCATIONS, max_size=LOCATIONS))
    for _ in range(data.draw(st.integers(0, 30))):
        action = data.draw(st.sampled_from(["add", "add", "ask", "clear"]))
        if action == "add":
            location = data.draw(st.integers(0, LOCATIONS - 1))
            time = tuple(data.draw(st.integers(0, 3)) for _ in range(depths[location]))
            difference = data.draw(st.sampled_from([-2, -1, 1, 2]))
            stamps.add(location, time, difference)
            counts[location, time] += difference
        elif action == "clear":
            stamps.clear()
            counts.clear()
        else:
            asked = data.draw(st.sets(st.integers(0, LOCATIONS - 1)))
            through = data.draw(st.none() | st.integers(0, 4))
            epochs = [time[0] for (location, time), count in counts.items() if count > 0 and location in asked]
            first = min((epoch for epoch in epochs if through is None or epoch <= through), default=None)
            assert stamps.first_epoch(sum(1 << location for location in asked), through) == first
            assert stamps.epochs() == len({time[0] for (_, time), count in counts.items() if count > 0})
        assert {(location, time): count for location, times in stamps.items() for time, count in times.items()} == {
            key: count for key, count in counts.items() if count
        }


@st.composite
def graphs(draw: st.DrawFn) -> Reachability:
    """Draw a graph of locations outside of loops, some with a loop between two of them; some edges cross."""
    graph, size = Reachability(), draw(st.integers(2, 6))
    for _ in range(size):
        graph.add_location(1)
    for target in range(size):
        for source in range(target) if draw(st.booleans()) else ():
            if draw(st.booleans()):
                body, back = graph.add_location(2), graph.add_location(2)
                graph.add_edge(source, body, enter(1), crosses=draw(st.booleans()))
                graph.add_edge(body, back, identity(2))
                graph.add_edge(back, body, step_round(2), crosses=draw(st.booleans()))
                graph.add_edge(body, target, leave(2))
            else:
                graph.add_edge(source, target, identity(1), crosses=draw(st.booleans()))
    return graph


@given(st.data(), graphs())
def test_frontiers_outside_of_loops_are_those_of_all_paths(data: st.DataObject, graph: Reachability) -> None:
    """A1.8: the sets of locations give what the summaries of paths give."""
    tracker, clock = Tracker(graph, shared=True), Frontier.at((data.draw(st.integers(0, 5)),))
    tracker.add_source(0, lambda: clock)
    stamps = []
    for _ in range(data.draw(st.integers(0, 8))):
        location = data.draw(st.integers(0, len(graph.depths) - 1))
        time = tuple(data.draw(st.integers(0, 4)) for _ in range(graph.depths[location]))
        worker, count = data.draw(st.integers(0, 1)), data.draw(st.sampled_from([-1, 1]))
        tracker.update(location, time, count, worker)
        stamps.append((worker, location, time, count))
        for target in range(len(graph.depths)):
            assert tracker.frontier(target) == frontier_by_paths(graph, stamps, target, clock, local=False)
            assert tracker.local_frontier(target) == frontier_by_paths(graph, stamps, target, clock, local=True)


def frontier_by_paths(
    graph: Reachability, stamps: list[tuple[int, int, Time, int]], target: int, clock: Frontier, local: bool
) -> Frontier:
    """Return the frontier by its definition: what positive counts and the source lead to, on all paths."""
    counts = defaultdict[tuple[int, int, Time], int](int)
    for worker, location, time, count in stamps:
        counts[worker, location, time] += count
    everywhere = {location: [path.apply for path in paths] for location, paths in graph.paths_to(target).items()}
    crossing = graph.crossing_paths_to(target)
    times = [path(time) for path in everywhere.get(0, []) for time in clock.elements]
    for (worker, location, time), count in counts.items():
        if count <= 0:
            continue
        if worker == 0 or not local:
            times += [path(time) for path in everywhere.get(location, [])]
        elif location in crossing:
            functions = crossing[location]
            times += [time] if functions is None else [function(time) for function in functions]
    return Frontier(times)


def test_a_location_that_is_added_later_counts() -> None:
    """A1.8: what was known about the graph is forgotten when it grows."""
    graph = Reachability()
    first, second = graph.add_location(1), graph.add_location(1)
    tracker = Tracker(graph)
    tracker.update(first, (3,), 1)
    assert not graph.reaches(first, second)
    graph.add_edge(first, second, identity(1))
    assert tracker.frontier(second) == Frontier.at((3,)) and graph.reaches(first, second)


def test_an_edge_that_is_added_later_covers() -> None:
    """A1.8: the sets of locations that hold back peers grow with the graph."""
    graph = Reachability()
    first, second = graph.add_location(1), graph.add_location(1)
    graph.add_exit(second)
    assert graph.covering_sets() == [0b11, 0b10]
    graph.add_edge(first, second, identity(1))
    assert graph.covering_sets() == [0b11, 0b11]
    assert graph.add_input(1, first, identity(1)) == 2
    assert graph.covering_sets() == [0b111, 0b111]

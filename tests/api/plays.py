"""Plays: the same updates under any physical circumstances, and the answers of queries to them.

A play lists the updates of each relation, and everything that must not affect an answer: when each update is inserted
before its time is complete, how the clock moves (one epoch at a time or several, along any antichains if times have
several coordinates), when a second instance of each query is installed, the idle work, how eagerly traces merge, and
how much history is kept. `perform` runs a play; `check` compares every query with its denotation at every time.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest.mock import patch

from hypothesis import settings
from hypothesis import strategies as st

import kpg
from kpg.algebra.frontier import Frontier, representative
from kpg.algebra.order import Time
from kpg.dataflow.operator import Operator
from kpg.testing.model import Update, accumulate, assert_agrees, is_readable
from kpg.testing.strategies import SMALL_DIFFS, advances, histories, updates

Multiset = dict[tuple[Any, ...], int]
Build = Callable[[Any, dict[str, Any]], Any]  # db and inputs → collection


def examples(share: float) -> settings:
    """Return settings with a share of the profile's examples: plays are long, and each runs many queries."""
    return settings(max_examples=max(5, int(share * settings().max_examples)))


@dataclass(frozen=True)
class Query:
    """A collection of some relations, and its denotation."""

    build: Build
    denotation: Callable[..., Multiset]
    inputs: tuple[str, ...]


@dataclass(frozen=True)
class Play:
    """Updates, and the circumstances under which they arrive."""

    streams: Mapping[str, list[Update[Any]]]
    clock: list[Frontier]  # from the first time to one that completes all
    pushes: list[list[tuple[str, Update[Any]]]]  # inserted while the clock is at clock[i]
    install: int  # the step at which the second instance of each query is installed
    idle: list[int]  # rows of idle work before the clock moves
    read: list[bool]  # whether changes and snapshots are read after it has moved
    effort: str
    history: int | None
    coordinates: int


@dataclass
class Performance:
    """The answers of the queries."""

    early: dict[str, list[Update[Any]]]
    late: dict[str, list[Update[Any]]]
    since: Frontier  # of the late ones
    snapshots: dict[str, list[tuple[Time, Multiset | kpg.DataError]]]


@st.composite
def plays(
    draw: st.DrawFn,
    rows: Mapping[str, st.SearchStrategy[Any]],
    *,
    coordinates: int = 1,
    largest: int = 3,
    max_size: int = 10,
    negative: bool = True,
    history: st.SearchStrategy[int | None] | None = None,
    diffs: st.SearchStrategy[int] = SMALL_DIFFS,
) -> Play:
    """Draw a play over relations of the given rows; with negative=False no count is ever negative."""
    kind = partial(updates, diffs=diffs) if negative else histories
    top = largest if negative else 2 * largest
    streams = {name: draw(kind(row, coordinates, max_size=max_size, largest=largest)) for name, row in rows.items()}
    end = Frontier.at((top + 1,) * coordinates)
    clock = [step for step in draw(advances(coordinates, top)) if not end.precedes(step)] + [end]
    pushes: list[list[tuple[str, Update[Any]]]] = [[] for _ in clock]
    for name, stream in streams.items():
        for update in stream:
            open_until = max(index for index, step in enumerate(clock) if step.beyond(update[1]))
            at = open_until if draw(st.booleans()) else draw(st.integers(0, open_until))
            pushes[at].append((name, update))
    return Play(
        streams=streams,
        clock=clock,
        pushes=pushes,
        install=draw(st.integers(0, len(clock))),
        idle=draw(st.lists(st.sampled_from([0, 0, 1, 10_000]), min_size=len(clock), max_size=len(clock))),
        read=draw(st.lists(st.booleans(), min_size=len(clock), max_size=len(clock))),
        effort=draw(st.sampled_from(["eager", "default", "lazy"])),
        history=draw(history if history is not None else st.sampled_from([None, None, 0, 1])),
        coordinates=coordinates,
    )


@contextmanager
def frontiers_only_advance() -> Iterator[None]:
    """Fail as soon as an operator reads a frontier that is not at or after the last one it read."""
    told: dict[tuple[int, int], Frontier] = {}
    ask = Operator.frontier

    def frontier(self: Operator, input_index: int = 0) -> Frontier:
        now = ask(self, input_index)
        if self.dataflow._fed_early is None:  # before, the dataflow is being built
            before = told.setdefault((id(self), input_index), now)
            assert before.precedes(now), f"the frontier of {self.name} went back from {before} to {now}"
            told[id(self), input_index] = now
        return now

    with patch.object(Operator, "frontier", frontier):
        yield


def perform(play: Play, schemas: Mapping[str, dict[str, Any]], queries: Mapping[str, Build]) -> Performance:
    """Run a play with every query installed twice: before the first update, and at the step that the play names."""
    with frontiers_only_advance():
        return _perform(play, schemas, queries)


def _perform(play: Play, schemas: Mapping[str, dict[str, Any]], queries: Mapping[str, Build]) -> Performance:
    with kpg.open(history=play.history, effort=play.effort, coordinates=play.coordinates) as db:  # type: ignore[arg-type]
        inputs = {name: db.input(name, **columns) for name, columns in schemas.items()}
        early = {name: build(db, inputs).output(name) for name, build in queries.items()}
        late: dict[str, Any] = {}
        done = Performance({name: [] for name in early}, {name: [] for name in early}, Frontier(), {})
        done.snapshots = {name: [] for name in early}
        for index, frontier in enumerate([*play.clock[1:], None]):
            if index == play.install:
                late, done.since = install(db, inputs, queries)
            push(db, inputs, play.pushes[index])
            if play.idle[index]:
                db.idle(play.idle[index])
            if frontier is not None:
                db.advance_to(frontier)
            if play.read[index]:
                collect(early, done.early)
                snapshot(db, early, done.snapshots)
        if play.install == len(play.clock):
            late, done.since = install(db, inputs, queries)
        collect(early, done.early)
        collect(late, done.late)
        snapshot(db, early | late, done.snapshots)
        return done


def install(db: Any, inputs: dict[str, Any], queries: Mapping[str, Build]) -> tuple[dict[str, Any], Frontier]:
    """Install all queries once more; return them and the time from which on they answer."""
    since = db.horizon()
    return {name: build(db, inputs).output(f"late {name}") for name, build in queries.items()}, since


def push(db: Any, inputs: dict[str, Any], items: list[tuple[str, Update[Any]]]) -> None:
    """Insert updates, one call for each."""
    for name, (row, time, diff) in items:
        if time == db.time.elements[0] and abs(diff) == 1:
            (inputs[name].insert if diff > 0 else inputs[name].remove)([row])
        else:
            inputs[name].update_at([row], time, diff)


def collect(outputs: dict[str, Any], into: dict[str, list[Update[Any]]]) -> None:
    """Read the changes of all outputs."""
    for name, output in outputs.items():
        into[name] += [(row, as_tuple(time), diff) for row, time, diff in output.changes()]


def snapshot(db: Any, outputs: dict[str, Any], into: dict[str, list[tuple[Time, Multiset | kpg.DataError]]]) -> None:
    """Read all outputs as of the last complete time."""
    if db.config.coordinates > 1 or db.sealed is None:
        return
    for name, output in outputs.items():
        try:
            table = output.snapshot(counts=True)
        except kpg.DataError as error:
            into[name].append((db.sealed.elements[0], error))
            continue
        rows = [[tuple(v) if isinstance(v, list) else v for v in column.to_pylist()] for column in table.columns]
        into[name].append((db.sealed.elements[0], {row[:-1]: row[-1] for row in zip(*rows, strict=True)}))


def as_tuple(time: Any) -> Time:
    """Return a time as the model writes it."""
    return time if isinstance(time, tuple) else (time,)


def check(play: Play, schemas: Mapping[str, dict[str, Any]], queries: Mapping[str, Query]) -> Performance:
    """Check that every query agrees with its denotation, early and late, in its changes and in its snapshots."""
    done = perform(play, schemas, {name: query.build for name, query in queries.items()})
    for name, query in queries.items():
        inputs = [play.streams[relation] for relation in query.inputs]
        try:
            agree(done, name, query, inputs)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from None
    return done


def agree(done: Performance, name: str, query: Query, inputs: list[list[Update[Any]]]) -> None:
    """Compare one query with its denotation."""
    assert_agrees(done.early[name], query.denotation, *inputs)
    late = [*done.late[name], *forgotten(done.since)]
    assert_agrees(late, query.denotation, *inputs, since=done.since)
    for stream in (done.early[name], late):
        assert len({(row, time) for row, time, _ in stream}) == len(stream), f"changes that cancel or repeat: {stream}"
    for _, time, _ in done.late[name]:
        assert representative(done.since, time) == time, f"a late query shows {time}, which was forgotten"
    for time, rows in done.snapshots[name]:
        want = query.denotation(*[accumulate(stream, time) for stream in inputs])
        if is_readable(want):
            assert rows == want, f"snapshot as of {time}: have {rows}, want {want}"
        else:
            assert isinstance(rows, kpg.DataError), f"snapshot as of {time}: have {rows}, want an error: {want}"


def forgotten(since: Frontier) -> Iterable[Update[Any]]:
    """Return updates without effect at the times of `since`, so that those times are checked too."""
    return [((), time, 0) for time in since]

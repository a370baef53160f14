"""The batcher: holds updates until their times are complete.

    seal(upper)  =  consolidate({(d, t, r) pushed and not yet sealed  |  t not beyond upper})

It keeps one sorted run and a list of unsorted parts. A seal sorts only the updates that it returns. When the
unsorted parts outgrow the run (and a minimum), they are sorted and merged into the run.
Cost: each update is sorted once and merged a constant number of times. Memory is linear in distinct (data, time),
regardless of the number of updates pushed. If consolidation removed little, the unsorted parts may grow to
`MAX_UNSORTED_RATIO` times the run before they are sorted again.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from kpg.algebra.frontier import CLOSED, Frontier
from kpg.algebra.order import Time
from kpg.columns.consolidation import consolidate_all, shrink_block
from kpg.columns.packed_updates import PackedUpdates, are_packed
from kpg.columns.pause_points import aside, can_pause, pause, rows_per_part
from kpg.columns.selection import slice_updates
from kpg.columns.updates import Ints, Updates, no_updates
from kpg.kernels.advance_times import minimal_times, split_times
from kpg.trace.description import elements
from kpg.trace.merger import merge_updates

MIN_UNSORTED_ROWS = 1 << 17  # fewer unsorted rows wait for the next seal: sorting them earlier would save little memory
MIN_UNSORTED_PACKED_ROWS = 1 << 22  # the same for packed rows, so that a load from several workers is sorted once
MIN_LOAD_ROWS = 1 << 17  # a smaller load is sorted at once
MIN_ROWS_SORTED_APART = 1 << 15  # packed rows of one time: fewer are cheaper to unpack than to merge with the others
MIN_PACKED_RATIO = 4  # of all rows to those that are not packed: more of these cost more to merge
MAX_UNSORTED_RATIO = 4  # of unsorted rows to the run, where consolidation removed less than a quarter of the rows

PackedForm: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]] | None  # time, and the constant diff if there is one


class UnsealedPart(NamedTuple):
    """Some updates, their minimal times, and whether they are sorted and consolidated."""

    updates: Updates
    earliest: Frontier
    consolidated: bool


class Batcher:
    """Collect updates, and return those before a frontier sorted and consolidated."""

    __slots__ = (
        "lanes",
        "depth",
        "width",
        "_empty",
        "_run",
        "_unsorted",
        "_unsorted_rows",
        "_pending",
        "_unsorted_ratio",
    )

    def __init__(self, lanes: int, depth: int, width: int = 1) -> None:
        self.lanes, self.depth, self.width = lanes, depth, width
        self._empty = UnsealedPart(no_updates(lanes, depth, width), CLOSED, True)
        self._run = self._empty
        self._unsorted: list[UnsealedPart] = []
        self._unsorted_rows = 0
        self._pending: Frontier | None = CLOSED  # None: must be computed
        self._unsorted_ratio = 1

    @property
    def rows(self) -> int:
        """The number of updates held."""
        return len(self._run.updates) + self._unsorted_rows

    @property
    def is_empty(self) -> bool:
        """Whether it holds no updates."""
        return self._run is self._empty and not self._unsorted

    @property
    def nbytes(self) -> int:
        """The memory of the updates held, in bytes."""
        return self._run.updates.nbytes + sum(part.updates.nbytes for part in self._unsorted)

    def pending(self) -> Frontier:
        """Return the minimal times of the updates held."""
        if self._pending is None:
            pending = self._run.earliest
            for part in self._unsorted:
                pending = pending.meet(part.earliest)
            self._pending = pending
        return self._pending

    def parts(self) -> list[Updates]:
        """Return the updates held, in no particular order."""
        return [part.updates for part in (self._run, *self._unsorted) if len(part.updates)]

    def push(self, updates: Updates, consolidated: bool = False) -> None:
        """Add updates. `consolidated` promises that they are sorted, each (data, time) once."""
        rows = len(updates)
        if rows == 0:
            return
        part = UnsealedPart(updates, earliest(updates.times), consolidated)
        self._unsorted.append(part)
        if self._pending is not None:
            self._pending = self._pending.meet(part.earliest)
        self._unsorted_rows += rows
        run = self._run.updates
        if (
            self._unsorted_rows > MIN_UNSORTED_ROWS
            and len(self._unsorted) > 1
            and self._unsorted_rows > self._unsorted_ratio * len(run)
            and (self._unsorted_rows > MIN_UNSORTED_PACKED_ROWS or not isinstance(updates, PackedUpdates))
        ):
            merged = merge_updates(run, _sort_parts(self._unsorted))
            self._unsorted_ratio = MAX_UNSORTED_RATIO if 4 * len(merged) > 3 * (len(run) + self._unsorted_rows) else 1
            self._run = self._part(merged)
            self._unsorted, self._unsorted_rows, self._pending = [], 0, None

    def seal_load(self, upper: Frontier) -> list[Updates] | None:
        """Remove all updates and return them unsorted, if they are a large load before `upper`; else return None.

        A load has one time and one diff, and came unsorted. A computation that may pause sorts it now, with pauses.
        """
        if self._unsorted_rows < MIN_LOAD_ROWS or len(self._run.updates) or can_pause():
            return None
        parts = [part.updates for part in self._unsorted]
        is_load = all(_is_like(part, parts[0]) for part in parts) and not any(p.consolidated for p in self._unsorted)
        if not is_load or upper.precedes(self._unsorted[0].earliest):
            return None
        self._unsorted, self._unsorted_rows, self._pending = [], 0, None
        return parts

    def seal(self, upper: Frontier) -> Updates:
        """Remove the updates at times not beyond `upper`, and return them sorted and consolidated."""
        self._pending = None
        if len(self._unsorted) == 1 and self._run is self._empty:
            part = self._unsorted[0]
            if part.updates.times.shape[1] == 1 and not upper.precedes(part.earliest):  # the only message
                parts, self._unsorted, self._unsorted_rows = self._unsorted, [], 0
                del part  # so that `_sort_parts` holds the only reference
                return _sort_parts(parts)
        run, self._run = self._split(self._run, upper)
        halves = [self._split(part, upper) for part in self._unsorted]
        early = [before for before, _ in halves if len(before.updates)]
        late = [after for _, after in halves if len(after.updates)]
        del halves
        self._unsorted = late
        self._unsorted_rows = sum([len(part.updates) for part in late])
        if not early:
            return run.updates
        rows = sum([len(part.updates) for part in early])
        if len(run.updates) < rows and not all(part.consolidated for part in early):
            if len(run.updates):
                early.append(run)
            del run  # sorting all of them is cheaper than sorting most of them and merging
            return _sort_parts(early)
        return merge_updates(run.updates, _sort_parts(early))

    def _part(self, updates: Updates) -> UnsealedPart:
        """Wrap sorted and consolidated updates."""
        return UnsealedPart(updates, earliest(updates.times), True) if len(updates) else self._empty

    def _split(self, part: UnsealedPart, upper: Frontier) -> tuple[UnsealedPart, UnsealedPart]:
        """Split a part into the updates not beyond `upper` and those beyond it."""
        if part.earliest.elements and upper.precedes(part.earliest):
            return self._empty, part
        updates = part.updates
        times = updates.times
        if times.shape[1] == 1 or not upper:  # all its updates are not beyond `upper`
            return part, self._empty
        n = times.shape[1]
        early, late = np.empty(n, np.int64), np.empty(n, np.int64)
        before = split_times(times, elements(upper, self.depth), early, late)
        if before == n:
            return part, self._empty
        halves = _select(updates, early[:before]), _select(updates, late[: n - before])
        return UnsealedPart(halves[0], CLOSED, part.consolidated), UnsealedPart(
            halves[1], earliest(halves[1].times), part.consolidated
        )


def _is_like(part: Updates, first: Updates) -> bool:
    """Return whether all updates of a part have one time and one diff, those of the first part."""
    blocks = ((part.times, first.times), (part.diffs, first.diffs))
    return all(mine.shape[1] == 1 and bool((mine == theirs).all()) for mine, theirs in blocks)


def _sort_parts(parts: list[UnsealedPart]) -> Updates:
    """Return all updates of the parts in order. The list is emptied, so a large load is not in memory twice."""
    if all(part.consolidated for part in parts) and (len(parts) <= 2 or not are_packed([p.updates for p in parts])):
        return _merge_runs([part.updates for part in parts])
    rows = sum([len(part.updates) for part in parts])
    if rows > rows_per_part(rows):
        return _sort_in_pieces(parts, rows_per_part(rows))
    groups = _group_by_form([part.updates for part in parts])
    parts.clear()
    return _merge_runs([aside(rows, consolidate_all, group) for group in groups])


def _group_by_form(parts: list[Updates]) -> list[list[Updates]]:
    """Group packed rows of one time, and all others, if the packed ones are most: together, all would be unpacked."""
    by_form: dict[PackedForm, list[Updates]] = {}
    for part in parts:
        by_form.setdefault(_packed_form(part), []).append(part)
    packed = [
        group for form, group in by_form.items() if form is not None and sum(map(len, group)) >= MIN_ROWS_SORTED_APART
    ]
    apart = {id(part) for group in packed for part in group}
    others = [part for part in parts if id(part) not in apart]
    if not others:
        return packed
    is_worth = packed and MIN_PACKED_RATIO * sum(map(len, others)) <= sum(map(len, parts))
    return [*packed, others] if is_worth else [parts]


def _packed_form(updates: Updates) -> PackedForm:
    """Return the time and the diff of packed rows, which rows that are sorted as words have in common; else None."""
    if not isinstance(updates, PackedUpdates):
        return None
    diff = updates.diffs[:, 0].tolist() if updates.has_constant_diff else ()
    return tuple(updates.times[:, 0].tolist()), tuple(diff)


def _sort_in_pieces(parts: list[UnsealedPart], rows: int) -> Updates:
    """Return all updates of the parts in order, with pauses between sorts and merges of bounded size."""
    runs = [part.updates for part in parts if part.consolidated]
    unsorted = [part.updates for part in parts if not part.consolidated]
    parts.clear()
    piece: list[tuple[Updates, int, int]] = []
    while unsorted:
        updates = unsorted.pop()
        for start in range(0, len(updates), rows):
            piece.append((updates, start, min(start + rows, len(updates))))
            if sum([end - begin for _, begin, end in piece]) >= rows // 2 or not unsorted:
                runs.append(aside(rows, _sort_slices, piece))
                piece = []
                pause()
    return _merge_runs(runs)


def _sort_slices(slices: list[tuple[Updates, int, int]]) -> Updates:
    return consolidate_all([slice_updates(*slice_) for slice_ in slices])


def _merge_runs(runs: list[Updates]) -> Updates:
    """Merge sorted runs into one, the shortest first, so that rows are merged as rarely as possible."""
    while len(runs) > 1:
        runs.sort(key=len, reverse=True)
        runs.append(merge_updates(runs.pop(), runs.pop()))
    return runs[0]


def _select(updates: Updates, rows: Ints) -> Updates:
    diffs = updates.diffs if updates.diffs.shape[1] == 1 else shrink_block(updates.diffs.take(rows, axis=1), len(rows))
    times = shrink_block(updates.times.take(rows, axis=1), len(rows))
    return Updates(updates.data.take(rows, axis=1), times, diffs)


def earliest(times: Ints) -> Frontier:
    """Return the frontier of the minimal times."""
    depth, n = times.shape
    if n == 1:
        time: Time = tuple(times[:, 0].tolist())
        return Frontier.at(time)
    if depth == 1:
        return Frontier.at((int(times.min()),))
    out = np.empty_like(times)
    kept = minimal_times(times, out)
    return Frontier([tuple(time) for time in out[:, :kept].T.tolist()])

"""A trace: the batches of one collection, kept few by merging.

    pending  ─ batches beyond the physical frontier: not merged, readers may cut between them; a few tiny ones before
               it, which are cheaper to look through than to merge one by one; a large last one that the since has
               not passed, as the answers to what was just asked: merged now, nothing that it takes away would cancel
    tail     ─ one batch of fewer than TAIL_ROWS rows, into which small batches are merged at once
    layers   ─ at most one for each level, oldest and highest first; level k holds one batch of at most ROOM << k
               rows, or two that are being merged

Together they accumulate, at every time beyond `since`, to what was inserted. A merge that ends with more rows than its
level has room for moves up one level, and begins a merge there if that level is taken.

Charging. Each insert gives every merge under way some rows of work for each of its rows, in all at least 4 ROOM << k
before a batch enters at level k (twice that if it never was in the tail). A merge at level k reads at most 2 ROOM << k
rows, so it ends before the next batch reaches its level: asserted where a batch moves up.

Idle work (`exert`) finishes merges, restores geometric sizes, merges where retractions may cancel a good part of what
they meet, and compacts once more each batch whose upper the since has passed. Then it is quiet until something changes.
"""

from __future__ import annotations

import weakref
from collections import deque
from typing import TYPE_CHECKING, Literal

from kpg.algebra.frontier import CLOSED, Frontier
from kpg.events import TraceEvents
from kpg.trace import layer as sizes
from kpg.trace.batch import Batch
from kpg.trace.layer import Layer, level_of, room_of
from kpg.trace.merger import ALL, collapses, merge_now, merge_tiny

if TYPE_CHECKING:
    from kpg.trace.handle import TraceHandle

Effort = Literal["eager", "default", "lazy"]

FUEL = {"eager": 8, "default": 8, "lazy": 4}  # rows read of each merge for each row inserted
SIP = 1024  # less fuel than this is saved up, for it would not pay its call
FEW_BATCHES = 4  # pending batches that may wait to be merged into the tail together
TINY_ROWS = 64  # of all of these
ASKING_ROWS = 512  # rows that are merged in the time it takes to ask a reader for its since


class Spine:
    """All batches of a collection, oldest first; see the module for how they are kept."""

    def __init__(self, key_lanes: int, lanes: int, depth: int, width: int = 1, effort: Effort = "default") -> None:
        self.key_lanes, self.lanes, self.depth, self.width = key_lanes, lanes, depth, width
        self.upper = Frontier.start(depth)
        self.events: TraceEvents | None = None
        self._fuel_per_row = FUEL[effort]
        self._eager = effort == "eager"
        self._saved = 0  # fuel not yet spent
        self._given = 0  # fuel since a batch last entered the layers
        self._layers: list[Layer] = []
        self._tail: Layer | None = None
        self._tail_merges = 0
        self._balanced = True  # nothing changed since sizes and retractions were last found in order
        self._pending: deque[Batch] = deque()
        self._pending_rows = 0
        self._handles: dict[int, weakref.ref[TraceHandle]] = {}
        self._since = Frontier.start(depth)
        self._physical = Frontier.start(depth)
        self._physical_known = True
        self._read = False  # whether there ever was a handle

    # readers

    @property
    def handles(self) -> tuple[TraceHandle, ...]:
        """The handles that hold this trace."""
        found = [ref() for ref in self._handles.values()]
        if None in found:
            self._handles = {key: ref for key, ref in self._handles.items() if ref() is not None}
            self._physical_known = False
        return tuple([handle for handle in found if handle is not None])

    @property
    def since(self) -> Frontier:
        """The meet of the handles' since: times beyond it can be told apart. Never goes back."""
        handles = self.handles
        if handles:
            met = handles[0].since
            for handle in handles[1:]:
                met = met.meet(handle.since)
            self._since = met
        elif self._read:
            self._since = CLOSED
        return self._since

    @property
    def physical(self) -> Frontier:
        """Batches through this frontier may have been merged; none reaches across it or any later upper."""
        if not self._physical_known:
            self._physical_known = True
            met = CLOSED
            for handle in self.handles:
                met = met.meet(handle.physical)
            self._physical = met
        return self._physical

    def physical_moved(self) -> None:
        """A handle's physical frontier changed."""
        self._physical_known = False

    def register(self, handle: TraceHandle) -> None:
        """Heed a new handle."""
        self._read = True
        self._handles[id(handle)] = weakref.ref(handle)
        self._physical_known = False

    def unregister(self, handle: TraceHandle) -> None:
        """Forget a handle."""
        self._handles.pop(id(handle), None)
        self._physical_known = False

    # batches

    def batches_through(self, upper: Frontier | None) -> tuple[Batch, ...]:
        """All batches whose upper precedes or equals the given one; all if None."""
        found: list[Batch] = []
        for layer in self._layers:
            found += layer.batches
        if self._tail is not None:
            found.append(self._tail.batch)
        batches = (*found, *self._pending)
        if upper is None or self.upper.elements == upper.elements or self.upper.precedes(upper):
            return batches
        chosen = tuple([batch for batch in batches if batch.upper.precedes(upper)])
        for batch in batches[len(chosen) :]:
            assert upper.precedes(batch.lower), f"a batch from {batch.lower} to {batch.upper} reaches across {upper}"
        return chosen

    @property
    def rows(self) -> int:
        """How many updates are held."""
        return sum(map(len, self.batches_through(None)))

    @property
    def nbytes(self) -> int:
        """What the arrays of all batches hold."""
        return sum(batch.nbytes for batch in self.batches_through(None))

    @property
    def batch_count(self) -> int:
        """How many batches a reader meets."""
        return len(self.batches_through(None))

    def insert(self, batch: Batch) -> None:
        """Append the batch that continues this trace; an empty one only moves the upper."""
        assert batch.lower == self.upper, f"expected a batch from {self.upper}, not {batch.lower}"
        self.upper = batch.upper
        rows = len(batch)
        if rows:
            if self.events is not None:
                self.events.inserted(batch)
            self._pending.append(batch)
            self._saved += self._fuel_per_row * rows
            if self._saved >= SIP:
                self._spend()
            self._pending_rows += rows
        if self._pending_rows > TINY_ROWS or len(self._pending) > FEW_BATCHES:
            self._absorb()

    def _absorb(self, idle: bool = False) -> None:
        """Move what the physical frontier has passed from pending to the tail: tiny batches as one."""
        physical = self.physical
        passed: list[Batch] = []
        while self._pending and self._pending[0].upper.precedes(physical):
            if not idle and self._early(self._pending[0]):
                break
            passed.append(self._pending.popleft())
        rows = sum(map(len, passed))
        self._pending_rows -= rows
        if len(passed) > 1 and rows <= TINY_ROWS + len(passed[-1]):
            tiny, passed = passed, [merge_tiny(passed)]
            self._tell(tuple(tiny), passed[0])
        for batch in passed:
            self._admit(batch)

    def _early(self, batch: Batch) -> bool:
        """Whether a large batch had better wait for the next: nothing it takes away would cancel before the since has
        passed it, and all of it would be read twice."""
        if len(self._pending) > 1 or len(batch) < ASKING_ROWS * len(self._handles):
            return False
        if self._eager or self.depth > 1 or not batch.upper:
            return False
        since = self.since
        return bool(since) and not collapses(batch, since)

    def _admit(self, batch: Batch) -> None:
        if self._tail is not None:
            self._tail_merges += 1  # to ask every reader for its since may cost more than the merge: not each time
            if self._tail_merges >= len(self._handles):
                self._tail_merges = 0
                self._since = self.since
            batch = self._merge_now(self._tail.batch, batch, self._since)
        rows = len(batch)
        self._tail = Layer(0, batch) if 0 < rows < sizes.TAIL_ROWS else None
        self._balanced = False
        if rows >= sizes.TAIL_ROWS:
            self._enter(batch)

    def _merge_now(self, older: Batch, newer: Batch, since: Frontier) -> Batch:
        result = merge_now(older, newer, since)
        self._tell((older, newer), result)
        return result

    def _complete(self, layer: Layer) -> Batch:
        merged = layer.batches
        result = layer.complete()
        if result is not merged[0]:
            self._tell(merged, result)
        return result

    def _tell(self, merged: tuple[Batch, ...], result: Batch) -> None:
        if self.events is not None:
            self.events.merged(merged, result)

    # layers

    def _spend(self) -> None:
        """Give what fuel was saved up to each merge under way."""
        fuel, self._saved = self._saved, 0
        self._given += fuel
        self._fuel(fuel)

    def _fuel(self, fuel: int) -> None:
        for layer in tuple(self._layers):  # oldest first, so that a level is free before a batch moves up to it
            left, at = fuel, layer
            while at.merge is not None and left > 0:  # a merge that another's result begins goes on with what is left
                left -= max(1, at.merge.work(left))
                at = self._look(at)

    def _look(self, layer: Layer) -> Layer:
        """If a layer's merge is done, put its result where it belongs; returns the layer it is in then."""
        if layer.merge is None or not layer.merge.done:
            return layer
        merged = layer.batches
        layer.finish()
        self._tell(merged, layer.batch)
        self._balanced = False
        place = self._layers.index(layer)
        natural = level_of(len(layer.batch))
        if len(layer.batch) == 0:
            self._layers.pop(place)
        elif natural <= layer.level:
            below = self._layers[place + 1].level + 1 if place + 1 < len(self._layers) else 0
            layer.level = max(natural, below)
        else:
            layer.level = natural
            if place and self._layers[place - 1].level <= natural:
                self._layers.pop(place)
                return self._join(self._layers[place - 1], layer.batch)
        return layer

    def _join(self, layer: Layer, newer: Batch) -> Layer:
        layer.join(newer, self.since)
        return self._look(layer)

    def _enter(self, batch: Batch) -> None:
        """Bring in a batch that is too large for the tail."""
        level = level_of(len(batch))
        while self._layers and self._layers[-1].level < level:  # older, so it cannot stay below: merge it along
            batch = self._merge_now(self._complete(self._layers.pop()), batch, self.since)
            level = max(level, level_of(len(batch)))
        owed = (4 if level == 0 else 8) * room_of(level)
        self._fuel(max(0, owed - self._given))
        self._given = 0
        if len(batch) == 0:
            return
        if self._layers and self._layers[-1].level <= level:
            self._join(self._layers[-1], batch)
        else:
            self._layers.append(Layer(level, batch))
        if self._eager:
            self._fuel(ALL)

    # idle work

    def exert(self, fuel: int) -> bool:
        """Do about `fuel` rows of idle work; returns whether more remains."""
        if self._pending:
            self._absorb(idle=True)
        while fuel > 0:
            layer = next((layer for layer in self._layers if layer.merge is not None), None)
            if layer is None:
                if not self._begin():
                    return False
                self._given = 0  # fuel given before it began was none of this merge's
            else:
                assert layer.merge is not None
                fuel -= max(1, layer.merge.work(fuel))
                self._look(layer)
        return True

    @property
    def unsettled(self) -> bool:
        """Whether idle work may come when the since moves on: some batch was not compacted beyond its upper yet."""
        layers = self._layers if self._tail is None else [*self._layers, self._tail]
        return bool(self._pending) or any(layer.unsettled(CLOSED) for layer in layers)

    def _begin(self) -> bool:
        """Begin the next piece of idle work, if there is any; no merge is under way."""
        since, tail, layers = self.since, self._tail, self._layers
        if tail is not None and tail.unsettled(since):
            tail.compact(since)
            self._tail = tail if len(self._complete(tail)) else None
            return True
        if not self._balanced:
            if tail is not None and self._wasteful(len(layers)):
                self._tail = None
                self._join(layers[-1], tail.batch)
                return True
            if len(layers) > 1 and (layers[-2].rows < 2 * layers[-1].rows or self._wasteful(len(layers) - 1)):
                self._join(layers[-2], layers.pop().batch)
                return True
            self._balanced = True
        for layer in layers:
            if layer.unsettled(since):
                layer.compact(since)
                self._look(layer)
                return True
        return False

    def _wasteful(self, place: int) -> bool:
        """Whether merging all from some layer before `place` on may cancel an eighth of their rows."""
        positive = negative = 0
        if self._tail is not None:
            negative = self._tail.negatives
            positive = self._tail.rows - negative
        for number in range(len(self._layers) - 1, -1, -1):
            layer = self._layers[number]
            rows, minus = layer.rows, layer.negatives
            cancelling = 2 * (min(negative, rows - minus) + min(positive, minus))
            if number < place and 8 * cancelling >= rows + positive + negative:
                return True
            positive += rows - minus
            negative += minus
        return False

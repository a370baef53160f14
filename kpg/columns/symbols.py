"""The symbol table: stores each distinct string and binary value once, with a small integer as its id.

    id(a) == id(b)  ⇔  a == b, byte for byte        (a string never equals a binary value)

An id is not negative; null is the lane value NULL and has no symbol. Ids do not sort as values, but their ranks,
`ranks()[id]`, do: by code point, all strings before all binary values. `reclaim` frees unused ids, which may then be
reused for other values. So a caller that keeps ids must either report them as live or `hold` them.

A reclamation may be done in parts: `begin_reclaim` finds the unused ids, and each `free_some` frees some of them. A
value that is interned in between keeps its id. So others may use the table between two parts.

Interning runs Python code only for the distinct values of each chunk. Ranks are computed on demand: k new symbols among
n cost k log n comparisons and a pass over n integers.
"""

from __future__ import annotations

import weakref
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kpg.columns.arrow_arrays import from_list, from_numpy
from kpg.columns.column_types.binary_type import is_arrow_bytes
from kpg.columns.column_types.string_type import is_arrow_text
from kpg.columns.lane_values import NULL
from kpg.columns.pause_points import pause
from kpg.columns.symbol_hashes import SymbolHashes
from kpg.columns.updates import Ints
from kpg.columns.value_order import VALUES_PER_PAUSE, value_order
from kpg.errors import SchemaMismatch

Value: TypeAlias = str | bytes

_BYTES = bytes  # inside Symbols, `bytes` is the property

_FREE = object()  # marks a free entry of the table
_MAX_CHUNK_BYTES = 2**31 - 1  # the limit of Arrow's 32-bit offsets
_SAMPLE_ROWS = 16_384  # rows in the sample that decides whether values repeat
_FEW_VALUES = 64  # of a dictionary: values that are looked up before ids are proposed for them
_ASCII_CODES = 128
_MIN_LETTERS = 64  # fewer texts are cheap in any way
_SEARCHES_PER_PAUSE = 64  # of a new symbol among the sorted ones: some ten microseconds each
_ENTRY_BYTES = 200  # an estimate of Python's string, dict and list entries, text excluded
_SHRINK_FACTOR = 4  # a table that was this many times as large gives its memory back
_SHRINK_STEP = 1024  # ids by which it becomes shorter
_MIN_SHRUNK_IDS = 100_000  # smaller tables have no memory worth giving back


class SymbolHold:
    """Keeps ids from being reclaimed as long as this object lives."""

    __slots__ = ("__weakref__", "ids")

    def __init__(self, ids: Ints) -> None:
        self.ids = ids


class Symbols:
    """The symbol table of one db."""

    def __init__(self) -> None:
        self._ids: dict[Value, int] = {}
        self._values: list[Any] = []  # by id; _FREE for a free id
        self._free: list[int] = []
        self._text_bytes = 0
        self.generation = 0  # grows before ids are freed: until then, an id stands for one value
        self._unused: npt.NDArray[np.bool_] | None = None  # by id: whether the present reclamation will free it
        self._unused_end = 0  # all ids from here on are done
        self._peak = 0  # the number of symbols when the present reclamation began
        self._held: weakref.WeakSet[SymbolHold] = weakref.WeakSet()
        self._order: Ints = np.empty(0, np.int64)  # the live ids except those in _unranked, sorted by value
        self._unranked: list[int] = []
        self._ranks: Ints | None = np.empty(0, np.int64)  # by id; None if _order has changed
        self._hashes = SymbolHashes()

    def __len__(self) -> int:
        return len(self._ids)

    def intern(self, values: Any) -> Ints:
        """Return the ids of an Arrow array, a chunked array or a list of str or of bytes; add new values to the table.

        Null gives NULL. All values must be of one type.
        """
        if isinstance(values, pa.ChunkedArray):
            if values.num_chunks == 1:
                ids = self._intern_array(values.chunk(0))
            else:
                ids = np.concatenate([np.empty(0, np.int64), *map(self._intern_array, values.chunks)])
        elif isinstance(values, pa.Array):
            ids = self._intern_array(values)
        else:
            ids = self._intern_list(values)
        if self._unused is not None:
            self._keep(ids)
        return ids

    def _intern_list(self, values: Sequence[Value | None]) -> Ints:
        ids = list(map(self._ids.get, values))  # type: ignore[arg-type]  # no key is None
        if None in ids:
            for row, (value, id_) in enumerate(zip(values, ids, strict=True)):
                if id_ is None:
                    ids[row] = NULL if value is None else self.intern_one(value)
        return np.array(ids, np.int64)

    def _intern_distinct(self, values: list[Value]) -> Ints:
        """Return the ids of values of which most are new: one access of the table for each, which costs most.

        Each value proposes an id. Those that have one already leave theirs free.
        """
        if 8 * len(self._free) < len(values) and self._ids.keys().isdisjoint(values):
            first, before = len(self._values), len(self._ids)
            fresh = range(first, first + len(values))
            self._ids.update(zip(values, fresh, strict=True))
            if len(self._ids) == before + len(values):  # no value occurs twice
                self._values.extend(values)
                self._note_new(list(fresh), _total_size(values))
                return np.arange(first, first + len(values))
            for value in values:
                self._ids.pop(value, None)
        reused = self._free[max(0, len(self._free) - len(values)) :]
        first = len(self._values)
        proposed = [*reused, *range(first, first + len(values) - len(reused))]
        ids = np.array(list(map(self._ids.setdefault, values, proposed)), np.int64)
        is_new = ids == np.array(proposed, np.int64)
        del self._free[len(self._free) - len(reused) :]
        self._free.extend(compress(proposed, (~is_new).tolist()))
        self._values.extend([_FREE] * (len(values) - len(reused)))
        new_ids, new_values = list(compress(proposed, is_new.tolist())), list(compress(values, is_new.tolist()))
        for id_, value in zip(new_ids, new_values, strict=True):
            self._values[id_] = value
        self._note_new(new_ids, _total_size(new_values))
        return ids

    def _note_new(self, ids: list[int], text_bytes: int) -> None:
        """Account for new values."""
        self._text_bytes += text_bytes
        self._unranked.extend(ids)

    def _intern_array(self, array: Any) -> Ints:
        if not pa.types.is_dictionary(array.type):
            if not (is_arrow_text(array.type) or is_arrow_bytes(array.type)):
                raise SchemaMismatch(f"a string or binary column cannot hold {array.type}")
            if len(array) >= _MIN_LETTERS and (letters := single_letters(array)) is not None:
                return self._intern_letters(letters)
            if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
                array = array.cast(pa.large_string() if is_arrow_text(array.type) else pa.large_binary())
            if _mostly_distinct(array):  # a dictionary would not pay
                values = _python_values(array)
                return self._intern_list(values) if array.null_count else self._intern_distinct(values)
            array = array.dictionary_encode()
            if not array.null_count:  # every value of the dictionary is used
                intern = self._intern_list if len(array.dictionary) <= _FEW_VALUES else self._intern_distinct
                taken: Ints = intern(_python_values(array.dictionary)).take(array.indices.to_numpy())
                return taken
        indices = pc.fill_null(array.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
        used = np.zeros(len(array.dictionary) + 1, np.bool_)  # the last entry stands for null
        used[indices] = True
        used[-1] = False
        chosen = np.flatnonzero(used)
        ids = np.full(len(used), NULL, np.int64)
        has_unused = len(chosen) < len(array.dictionary)
        values = array.dictionary.take(chosen) if has_unused else array.dictionary
        ids[chosen] = self._intern_list(_python_values(values))
        mapped: Ints = ids[indices]
        return mapped

    def _intern_letters(self, letters: npt.NDArray[np.uint8]) -> Ints:
        """Return the ids of texts of one ASCII character each."""
        used = np.zeros(_ASCII_CODES, np.bool_)
        used[letters] = True
        ids = np.zeros(_ASCII_CODES, np.int64)
        ids[used] = self._intern_list(list(map(chr, np.flatnonzero(used).tolist())))
        return ids.take(letters)

    def intern_one(self, value: Value) -> int:
        """Return the id of one value."""
        id_ = self._ids.get(value)
        if id_ is not None:
            if self._unused is not None:
                self._keep(np.array([id_], np.int64))
            return id_
        size = _size(value)
        if self._free:
            id_ = self._free.pop()
            self._values[id_] = value
        else:
            id_ = len(self._values)
            self._values.append(value)
        self._ids[value] = id_
        self._note_new([id_], size)
        return id_

    def values(self, ids: Ints) -> list[Any]:
        """Return the Python values of ids, None for NULL."""
        table = self._values
        return [table[id_] if id_ >= 0 else None for id_ in ids.tolist()]

    def values_in_turns(self, ids: Ints) -> list[Any]:
        """Return what `values` returns; others may run meanwhile if there are many ids."""
        values: list[Any] = []
        for start in range(0, len(ids), VALUES_PER_PAUSE):
            values += self.values(ids[start : start + VALUES_PER_PAUSE])
            pause()
        return values

    def text(self, ids: Ints, type: pa.DataType | None = None) -> Any:
        """Return the values of ids as an Arrow array of `type` (default: string), chunked from 2 GiB on."""
        type = pa.string() if type is None else type
        large = pa.large_string() if is_arrow_text(type) else pa.large_binary()
        distinct, inverse = self.distinct(ids)
        values = self.values(distinct)
        dictionary: Any = from_list(values, large)
        if isinstance(dictionary, pa.ChunkedArray):
            dictionary = dictionary.combine_chunks()
        expanded = dictionary.take(from_numpy(inverse, pa.int64()))
        lengths = np.array([0 if value is None else _size(value) for value in values], np.int64)[inverse]
        if not len(ids) or int(lengths.sum()) <= _MAX_CHUNK_BYTES:
            return expanded.cast(type)
        return pa.chunked_array([expanded.slice(*cut).cast(type) for cut in _cuts(lengths)])

    def distinct(self, ids: Ints) -> tuple[Ints, Ints]:
        """Return the distinct ids (and NULL), and for each row the index of its id among them."""
        if len(ids) == 1:
            return ids, np.zeros(1, np.int64)
        count = len(self._values)  # read once: another thread may write a checkpoint while the db adds symbols
        if count > 4 * len(ids):  # a table by id would be mostly empty
            return np.unique(ids, return_inverse=True)
        slots = np.where(ids < 0, count, ids)
        used = np.zeros(count + 1, np.bool_)
        used[slots] = True
        present = np.flatnonzero(used)
        position = np.empty(len(used), np.int64)
        position[present] = np.arange(len(present))
        return np.where(present == count, NULL, present), position[slots]

    def ranks(self) -> Ints:
        """Return the rank of each id in the order of values, valid until symbols are added. Unused ids rank last."""
        while self._unranked:
            self._rank_new()
        if self._ranks is None:
            others = np.ones(len(self._values), np.bool_)
            others[self._order] = False
            self._ranks = np.empty(len(self._values), np.int64)
            self._ranks[others] = np.arange(len(self._order), len(self._values))
            self._ranks[self._order] = np.arange(len(self._order))
        return self._ranks

    def _rank_new(self) -> None:
        """Sort the symbols that are not in the order yet; others may run, and add, free or rank symbols, meanwhile."""
        unranked, generation = self._unranked, self.generation
        count = len(unranked)
        order = self._merge_into_order(unranked[:count])
        if self._unranked is unranked and self.generation == generation:
            self._order, self._unranked, self._ranks = order, unranked[count:], None

    def _merge_into_order(self, new_ids: list[int]) -> Ints:
        """Return the ids sorted by value, new ones included."""
        before = self._order
        if len(new_ids) * 8 > len(before):
            return self._sorted(np.concatenate([before, np.array(new_ids, np.int64)]))
        ids = self._sorted(np.array(new_ids, np.int64))
        positions = []
        for at, id_ in enumerate(ids.tolist()):
            if at % _SEARCHES_PER_PAUSE == 0:
                pause()
            positions.append(bisect_left(before, self._sort_key(id_), key=self._sort_key))
        return np.insert(before, positions, ids)

    def _sorted(self, ids: Ints) -> Ints:
        return ids[value_order(self.values_in_turns(ids))]

    def _sort_key(self, id_: int) -> tuple[bool, Value]:
        """Return the sort key of an id: strings come before binary values."""
        value = self._values[id_]
        return isinstance(value, _BYTES), value

    def order(self) -> Ints:
        """Return the ids by rank: `order()[ranks()[id]] == id` for every live id."""
        self.ranks()
        return self._order

    def rank_of(self, ids: Ints) -> Ints:
        """Return the rank of each id; null has the least rank, NULL."""
        ranks = self.ranks()
        return np.where(ids < 0, NULL, ranks[np.maximum(ids, 0)]) if len(ranks) else ids

    @property
    def ranked(self) -> bool:
        """Whether `ranks` returns without comparing values."""
        return not self._unranked

    def hash_of(self, ids: Ints) -> Ints:
        """Return a hash of the value of each id, the same in every process; that of null is NULL."""
        return self._hashes.of(self._values, ids)

    def hold(self, ids: Ints) -> SymbolHold:
        """Keep these ids from being reclaimed until the returned object is deleted."""
        hold = SymbolHold(ids)
        self._held.add(hold)
        return hold

    @property
    def id_bound(self) -> int:
        """An integer above all ids."""
        return len(self._values)

    def reclaim(self, live_ids: Ints | Iterable[int]) -> int:
        """Free every symbol that is neither live nor held; return their number. Negative ids (null) are ignored."""
        freed = self.begin_reclaim(live_ids)
        self.free_some(len(self._values))
        return freed

    def begin_reclaim(self, live_ids: Ints | Iterable[int]) -> int:
        """Find the symbols that are neither live nor held, for `free_some`; return their number.

        A reclamation that has not ended is replaced.
        """
        unused = np.ones(len(self._values), np.bool_)
        live_array = live_ids if isinstance(live_ids, np.ndarray) else np.array(list(live_ids), np.int64)
        for ids in [live_array, *(hold.ids for hold in self._held)]:
            unused[ids[ids >= 0]] = False
        unused[self._free] = False
        count = int(np.count_nonzero(unused))
        if self._unused is not None:  # the ids that were not freed are in no order, also those that are live again
            self._unranked.extend(np.flatnonzero(self._unused).tolist())
            self._unused = None
        if not count:
            return 0
        self.generation += 1
        self._order = self._order[~unused[self._order]]
        self._ranks = None
        is_unused = unused.tobytes()  # of which Python reads an element faster
        self._unranked = [id_ for id_ in self._unranked if not is_unused[id_]]
        self._unused, self._unused_end, self._peak = unused, len(unused), len(self._ids)
        return count

    @property
    def is_reclaiming(self) -> bool:
        """Whether a reclamation has begun and not ended."""
        return self._unused is not None

    def free_some(self, ids: int) -> bool:
        """Free the unused symbols among the next ids of the present reclamation; return whether more are left."""
        unused = self._unused
        if unused is None:
            return False
        start = max(0, self._unused_end - ids)  # from the end, so that low ids are used again first
        chosen = (np.flatnonzero(unused[start : self._unused_end]) + start).tolist()[::-1]
        unused[start : self._unused_end], self._unused_end = False, start
        table, values = self._ids, self._values
        for id_ in chosen:
            value = values[id_]
            values[id_] = _FREE
            self._text_bytes -= _size(value)
            del table[value]
        self._free.extend(chosen)
        self._hashes.forget(chosen)
        if not start:
            self._unused = None
            self._shrink()
        return start > 0

    def _keep(self, ids: Ints) -> None:
        """Keep symbols that the present reclamation would free: they are in use again."""
        assert self._unused is not None
        known = ids[(ids >= 0) & (ids < len(self._unused))]
        again = np.unique(known[self._unused[known]])
        self._unused[again] = False
        self._unranked.extend(again.tolist())

    def _shrink(self) -> None:
        """Give back the memory of lists and tables that are much too large now."""
        if self._peak < _MIN_SHRUNK_IDS or self._peak < _SHRINK_FACTOR * len(self._ids):
            return
        self._ids = dict(self._ids)
        size = len(self._values)
        while size >= _SHRINK_STEP and self._values[size - _SHRINK_STEP : size].count(_FREE) == _SHRINK_STEP:
            size -= _SHRINK_STEP
        if size < len(self._values):
            del self._values[size:]
            self._free = [id_ for id_ in self._free if id_ < size]
            self._ranks = None

    @property
    def bytes(self) -> int:
        """An estimate of the memory of the table."""
        arrays = self._order.nbytes + self._hashes.nbytes + (0 if self._ranks is None else self._ranks.nbytes)
        return self._text_bytes + _ENTRY_BYTES * len(self._ids) + arrays


def single_letters(array: Any) -> npt.NDArray[np.uint8] | None:
    """Return the codes of an Arrow array of strings if each is one ASCII character, and none is null."""
    if not pa.types.is_string(array.type) or array.null_count:
        return None
    _, offsets, text = array.buffers()
    ends = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    if ends[-1] - ends[0] != len(array) or (np.diff(ends) != 1).any():
        return None
    letters = np.frombuffer(text, np.uint8)[ends[0] : ends[-1]]
    return letters if letters.max() < _ASCII_CODES else None


def _size(value: Value) -> int:
    """Return the length in UTF-8 bytes; raise SchemaMismatch for text that is not Unicode."""
    if isinstance(value, str):
        if value.isascii():
            return len(value)
        try:
            return len(value.encode())
        except UnicodeEncodeError as error:
            raise SchemaMismatch(
                "text that is not Unicode",
                detail=f"{value[:40]!r} has a lone surrogate at {error.start}.",
                hint="Decode the bytes with the right encoding, or use a binary column.",
            ) from None
    return len(value)


def _total_size(values: list[Value]) -> int:
    """Return the sum of `_size` over values of one type."""
    if values and isinstance(values[0], str):
        text = "".join(values)  # type: ignore[arg-type]
        return len(text) if text.isascii() else len(text.encode())
    return sum(map(len, values))


def _mostly_distinct(array: Any) -> bool:
    """Return whether few values are repeated, judged by a sample of the first ones."""
    sample = array.slice(0, _SAMPLE_ROWS)
    return len(sample) < len(array) and 2 * len(sample.dictionary_encode().dictionary) > len(sample)


def _python_values(array: Any) -> list[Any]:
    try:
        return array.to_pylist()  # type: ignore[no-any-return]
    except UnicodeDecodeError as error:
        raise SchemaMismatch(
            "text that is not UTF-8",
            detail=f"{bytes(error.object)[:40]!r}: {error.reason} at {error.start}.",
            hint="Decode the bytes with the right encoding, or use a binary column.",
        ) from None


def _cuts(lengths: Ints) -> Iterable[tuple[int, int]]:
    """Yield (offset, length) of slices that each fit 32-bit offsets."""
    ends = np.cumsum(lengths)
    start = 0
    while start < len(ends):
        before = int(ends[start - 1]) if start else 0
        stop = max(int(np.searchsorted(ends, before + _MAX_CHUNK_BYTES, side="right")), start + 1)
        yield start, stop - start
        start = stop

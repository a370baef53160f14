"""Symbols: each distinct string and binary value once, known by a small number.

    ids of values are equal  ⇔  the values are equal, byte for byte        (a string never equals a binary value)

An id is not negative; null is the lane value NULL and has no symbol. Ids say nothing about order: `ranks()[id]` does,
code point by code point, all strings before all binary values. Ids that nothing refers to are given back by `reclaim`
and may then name another value, so whoever keeps ids must either report them as live or `hold` them.

Interning costs Python work per distinct value of each chunk only. Ranks are made when asked: k new symbols among n cost
k log n comparisons and a pass over n integers.
"""

from __future__ import annotations

import weakref
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpg.columns.column_types.binary_type import is_arrow_bytes
from kpg.columns.column_types.string_type import is_arrow_text
from kpg.columns.hashing import hash_values
from kpg.columns.lane_values import NULL
from kpg.columns.updates import Ints
from kpg.errors import SchemaMismatch

Value: TypeAlias = str | bytes

_BYTES = bytes  # inside Symbols, `bytes` is the property

_FREE = object()  # stands in the table where no symbol is
_MAX_CHUNK_BYTES = 2**31 - 1  # what Arrow's 32-bit offsets can address
_SAMPLE = 16_384  # rows that tell whether values repeat
_ENTRY_BYTES = 200  # about what Python's string, dict and list entries cost beside the text


class SymbolHold:
    """Ids that `reclaim` spares for as long as this object lives."""

    __slots__ = ("__weakref__", "ids")

    def __init__(self, ids: Ints) -> None:
        self.ids = ids


class Symbols:
    """The table of symbols of one db."""

    def __init__(self) -> None:
        self._ids: dict[Value, int] = {}
        self._values: list[Any] = []  # by id; _FREE where none is
        self._free: list[int] = []
        self._text_bytes = 0
        self._held: weakref.WeakSet[SymbolHold] = weakref.WeakSet()
        self._order: Ints = np.empty(0, np.int64)  # by value, all live ids but those in _unranked
        self._unranked: list[int] = []
        self._ranks: Ints | None = np.empty(0, np.int64)  # None when _order has changed since
        self._hashes: Ints = np.empty(0, np.int64)
        self._unhashed: list[int] = []

    def __len__(self) -> int:
        return len(self._ids)

    def intern(self, values: Any) -> Ints:
        """The ids of an Arrow array, a chunked array or a list of str or of bytes; new ones are made as needed.

        Null gives NULL. All values are of one type.
        """
        if isinstance(values, pa.ChunkedArray):
            if values.num_chunks == 1:
                return self._intern_array(values.chunk(0))
            return np.concatenate([np.empty(0, np.int64), *map(self._intern_array, values.chunks)])
        if isinstance(values, pa.Array):
            return self._intern_array(values)
        return self._intern_list(values)

    def _intern_list(self, values: Sequence[Value | None]) -> Ints:
        known = list(map(self._ids.get, values))  # type: ignore[arg-type]  # no key is None
        if None in known:
            for row, (value, id_) in enumerate(zip(values, known, strict=True)):
                if id_ is None:
                    known[row] = NULL if value is None else self.intern_one(value)
        return np.array(known, np.int64)

    def _intern_array(self, array: Any) -> Ints:
        if not pa.types.is_dictionary(array.type):
            if not (is_arrow_text(array.type) or is_arrow_bytes(array.type)):
                raise SchemaMismatch(f"symbols are strings or binary values, not {array.type}")
            large = array.cast(pa.large_string() if is_arrow_text(array.type) else pa.large_binary())
            if _mostly_distinct(large):  # a dictionary would be work for nothing
                return self._intern_list(_python_values(large))
            array = large.dictionary_encode()
        indices = pc.fill_null(array.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
        used = np.zeros(len(array.dictionary) + 1, np.bool_)  # the last entry stands for null
        used[indices] = True
        used[-1] = False
        chosen = np.flatnonzero(used)
        ids = np.full(len(used), NULL, np.int64)
        few = len(chosen) < len(array.dictionary)
        ids[chosen] = self._intern_list(_python_values(array.dictionary.take(chosen) if few else array.dictionary))
        mapped: Ints = ids[indices]
        return mapped

    def intern_one(self, value: Value) -> int:
        """The id of one value."""
        id_ = self._ids.get(value)
        if id_ is not None:
            return id_
        self._text_bytes += _size(value)
        if self._free:
            id_ = self._free.pop()
            self._values[id_] = value
        else:
            id_ = len(self._values)
            self._values.append(value)
        self._ids[value] = id_
        self._unranked.append(id_)
        self._unhashed.append(id_)
        return id_

    def values(self, ids: Ints) -> list[Any]:
        """The Python values of ids, None for NULL."""
        table = self._values
        return [table[id_] if id_ >= 0 else None for id_ in ids.tolist()]

    def text(self, ids: Ints, type: pa.DataType | None = None) -> Any:
        """The values of ids as an Arrow array of `type` (string unless said), chunked if 2 GiB or more."""
        type = pa.string() if type is None else type
        large = pa.large_string() if is_arrow_text(type) else pa.large_binary()
        distinct, inverse = self.distinct(ids)
        values = self.values(distinct)
        dictionary: Any = pa.array(values, large)
        if isinstance(dictionary, pa.ChunkedArray):
            dictionary = dictionary.combine_chunks()
        expanded = dictionary.take(pa.array(inverse, pa.int64()))
        lengths = np.array([0 if value is None else _size(value) for value in values], np.int64)[inverse]
        if not len(ids) or int(lengths.sum()) <= _MAX_CHUNK_BYTES:
            return expanded.cast(type)
        return pa.chunked_array([expanded.slice(*cut).cast(type) for cut in _cuts(lengths)])

    def distinct(self, ids: Ints) -> tuple[Ints, Ints]:
        """Each id (or NULL) once, and for each row which of them it is."""
        if len(ids) == 1:
            return ids, np.zeros(1, np.int64)
        if len(self._values) > 4 * len(ids):  # a table by id would be mostly empty
            return np.unique(ids, return_inverse=True)
        slots = np.where(ids < 0, len(self._values), ids)
        used = np.zeros(len(self._values) + 1, np.bool_)
        used[slots] = True
        found = np.flatnonzero(used)
        position = np.empty(len(used), np.int64)
        position[found] = np.arange(len(found))
        return np.where(found == len(self._values), NULL, found), position[slots]

    def ranks(self) -> Ints:
        """By id, its place in the order of values; good until new symbols come. Freed ids come after all others."""
        if self._unranked:
            self._order = self._with(self._unranked)
            self._unranked, self._ranks = [], None
        if self._ranks is None:
            self._ranks = np.empty(len(self._values), np.int64)
            self._ranks[self._free] = np.arange(len(self._order), len(self._values))
            self._ranks[self._order] = np.arange(len(self._order))
        return self._ranks

    def _with(self, fresh: list[int]) -> Ints:
        """The order of values, with that of new symbols merged in."""
        if len(fresh) * 8 > len(self._order):
            return np.array(sorted(self._order.tolist() + fresh, key=self._place), np.int64)
        ids = sorted(fresh, key=self._place)
        places = [bisect_left(self._order, self._place(id_), key=self._place) for id_ in ids]
        return np.insert(self._order, places, ids)

    def _place(self, id_: int) -> tuple[bool, Value]:
        """What ids are sorted by: strings come first."""
        value = self._values[id_]
        return isinstance(value, _BYTES), value

    def order(self) -> Ints:
        """By rank, the id: `order()[ranks()[id]] == id` for every live id."""
        self.ranks()
        return self._order

    def rank_of(self, ids: Ints) -> Ints:
        """The rank of each id; null has the least, NULL."""
        ranks = self.ranks()
        return np.where(ids < 0, NULL, ranks[np.maximum(ids, 0)]) if len(ranks) else ids

    @property
    def ranked(self) -> bool:
        """Whether `ranks` is at hand without comparing values."""
        return not self._unranked

    def hashes(self) -> Ints:
        """By id, a hash of the value that is the same in every process."""
        if self._unhashed:
            grown = np.zeros(len(self._values), np.int64)
            grown[: len(self._hashes)] = self._hashes
            grown[self._unhashed] = hash_values([self._values[id_] for id_ in self._unhashed])
            self._hashes, self._unhashed = grown, []
        return self._hashes

    def hash_of(self, ids: Ints) -> Ints:
        """The hash of each id; that of null is NULL."""
        hashes = self.hashes()
        return np.where(ids < 0, NULL, hashes[np.maximum(ids, 0)]) if len(hashes) else ids

    def hold(self, ids: Ints) -> SymbolHold:
        """Spare these ids from `reclaim` until the returned object is gone."""
        held = SymbolHold(ids)
        self._held.add(held)
        return held

    def reclaim(self, live_ids: Ints | Iterable[int]) -> int:
        """Free every symbol that is neither live nor held; how many those were. Negative ids (null) are ignored."""
        live = np.zeros(len(self._values), np.bool_)
        given = live_ids if isinstance(live_ids, np.ndarray) else np.array(list(live_ids), np.int64)
        for ids in [given, *(held.ids for held in self._held)]:
            live[ids[ids >= 0]] = True
        dead = [id_ for id_ in np.flatnonzero(~live).tolist() if self._values[id_] is not _FREE]
        if not dead:
            return 0
        for id_ in dead:
            value = self._values[id_]
            self._values[id_] = _FREE
            self._text_bytes -= _size(value)
            del self._ids[value]
        self._free.extend(reversed(dead))  # low ids first
        self._order = self._order[live[self._order]]
        self._ranks = None
        self._unranked = [id_ for id_ in self._unranked if live[id_]]
        self._unhashed = [id_ for id_ in self._unhashed if live[id_]]
        return len(dead)

    @property
    def bytes(self) -> int:
        """About what the table holds in memory."""
        arrays = self._order.nbytes + self._hashes.nbytes + (0 if self._ranks is None else self._ranks.nbytes)
        return self._text_bytes + _ENTRY_BYTES * len(self._ids) + arrays


def _size(value: Value) -> int:
    """The length in UTF-8 bytes, which also proves that the value has one."""
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


def _mostly_distinct(array: Any) -> bool:
    """Whether, to judge by the first values, few are repeated."""
    sample = array.slice(0, _SAMPLE)
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
    """(offset, length) of slices that each fit 32-bit offsets."""
    ends = np.cumsum(lengths)
    start = 0
    while start < len(ends):
        before = int(ends[start - 1]) if start else 0
        stop = max(int(np.searchsorted(ends, before + _MAX_CHUNK_BYTES, side="right")), start + 1)
        yield start, stop - start
        start = stop

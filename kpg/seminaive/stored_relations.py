"""The relations of a rule system as row codes: value ids, layouts, logs of the relations that rules read, and indexes.

Values of one domain (`kpg.seminaive.column_domains`) get ids from one `ValueIds`. When a domain outgrows its bits, all
codes are computed again with more bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from kpg.columns.memory_budget import reserve
from kpg.columns.pause_points import aside
from kpg.columns.updates import Ints
from kpg.errors import Overflow
from kpg.kernels.code_sets import decode_column
from kpg.seminaive.chain_index import ChainIndex
from kpg.seminaive.code_index import CodeIndex
from kpg.seminaive.code_layout import HALF_BITS, CodeLayout, RowLayout, TupleIds, layout_of, recode
from kpg.seminaive.code_log import CodeLog
from kpg.seminaive.code_set import CodeSet
from kpg.seminaive.column_domains import ColumnDomains, column_domains, with_own_variables
from kpg.seminaive.linear_closure import linearised
from kpg.seminaive.recursion_rules import RuleSystem
from kpg.seminaive.row_codes import ValueIds


class NewRows(NamedTuple):
    """New rows of a relation, int64[arity, n], and whether they are sorted."""

    rows: Ints
    is_sorted: bool


@dataclass(slots=True)
class StoredRelations:
    """Ids, layouts, logs and indexes of all relations, and the sets of derived rows."""

    system: RuleSystem
    domains: ColumnDomains = field(init=False)
    ids: list[ValueIds] = field(init=False)  # of each domain
    bits: list[int] = field(init=False)  # of the ids of each domain
    tuples: TupleIds = field(default_factory=TupleIds)
    layouts: list[RowLayout] = field(init=False)
    indexes: dict[tuple[int, tuple[int, ...], int], CodeIndex | ChainIndex] = field(default_factory=dict)
    _derived: list[CodeSet] = field(init=False)
    _read: list[CodeLog] = field(init=False)

    def __post_init__(self) -> None:
        self.system = with_own_variables(linearised(self.system))
        self.domains = column_domains(self.system)
        self._forget_rows()

    def _forget_rows(self) -> None:
        """Start without ids and rows."""
        self.ids = [ValueIds() for _ in self.domains.constants]
        self.bits = [1 for _ in self.ids]
        self.tuples = TupleIds()
        self.layouts = self._current_layouts()
        self.indexes.clear()
        self._derived = [CodeSet(layout.width) for layout in self.layouts[: self.system.derived]]
        self._read = [CodeLog() for _ in self.layouts]

    def _current_layouts(self) -> list[RowLayout]:
        return [
            layout_of(tuple(self.bits[domain] for domain in columns), columns, len(columns) // 2, self.tuples)
            for columns in self.domains.columns
        ]

    def layout(self, relation: int) -> RowLayout:
        """Return the code layout of a relation."""
        return self.layouts[relation]

    def is_ordered(self, relation: int) -> bool:
        """Return whether the codes of a relation sort as its rows do."""
        domains = self.domains.columns[relation]
        return self.layouts[relation].is_ordered and all(self.ids[domain].ordered for domain in domains)

    def row_count(self, relation: int) -> int:
        """Return the number of rows of a derived relation, also while they are being derived."""
        return len(self._derived[relation])

    def nbytes(self) -> int:
        """Return the size of all ids, sets, logs, indexes and tuples in bytes."""
        indexes = sum(index.nbytes for index in self.indexes.values())
        read = sum(log.nbytes for log in self._read)
        ids = self.tuples.nbytes + sum(ids.nbytes for ids in self.ids)
        return ids + indexes + read + sum(codes.nbytes for codes in self._derived)

    def rows_of(self, relation: int) -> Iterator[Ints]:
        """Yield all rows of a relation in parts, int64[arity, n] each."""
        has_set = relation < self.system.derived and len(self._derived[relation])
        for codes in self._derived[relation].runs() if has_set else self._codes(relation):
            yield self.decode(relation, [codes])

    # Ids and codes

    def _assign_ids(self, rows: list[list[Ints]]) -> None:
        """Assign ids to all values of rules and of each relation's rows; widen the codes if ids no longer fit."""
        parts = [[np.array(sorted(constants), np.int64)] for constants in self.domains.constants]
        for relation, blocks in enumerate(rows):
            for block in blocks:
                for domain, lane in zip(self.domains.columns[relation], block, strict=True):
                    parts[domain].append(lane)
        for ids, values in zip(self.ids, parts, strict=True):
            ids.add(np.concatenate(values))
        bits = [max(1, (len(ids) - 1).bit_length()) for ids in self.ids]
        if max(bits, default=0) > HALF_BITS:
            raise Overflow(
                f"{self.system.name} has too many distinct values", detail=f"{max(map(len, self.ids)):,} values."
            )
        if any(more > now for more, now in zip(bits, self.bits, strict=True)):
            self._widen([max(pair) for pair in zip(bits, self.bits, strict=True)])

    def _widen(self, bits: list[int]) -> None:
        """Encode everything again with more bits for some ids."""
        before, self.bits = self.layouts, bits
        self.layouts = self._current_layouts()
        for relation, old in enumerate(self._derived):
            codes = CodeSet(self.layouts[relation].width)
            for run in old.runs():
                codes.insert(recode(run, before[relation], self.layouts[relation]))
            self._derived[relation] = codes
        for relation, log in enumerate(self._read):
            log.recode(before[relation], self.layouts[relation])
        self.indexes.clear()

    def _encode(self, relation: int, rows: Ints) -> Ints:
        """Return the codes of rows, int64[arity, n]."""
        domains = self.domains.columns[relation]
        ids = [self.ids[domain].lookup(lane) for domain, lane in zip(domains, rows, strict=True)]
        return self.layouts[relation].encode(ids, rows.shape[1])

    def _all_rows(self, relation: int) -> Ints:
        """Return all rows of a derived relation, in the order of their codes."""
        return aside(len(self._derived[relation]), self._decode_all, relation)

    def _decode_all(self, relation: int) -> Ints:
        codes = self._derived[relation]
        codes.pack()
        arity = self.layouts[relation].arity
        reserve(8 * arity * len(codes))
        out = np.empty((arity, len(codes)), np.int64)
        at = 0
        for run in codes.runs():
            self._decode_into(relation, run, out[:, at : at + len(run)])
            at += len(run)
        return out

    def decode(self, relation: int, parts: list[Ints]) -> Ints:
        """Return the rows of some codes, int64[arity, n]."""
        arity = self.layouts[relation].arity
        reserve(8 * (1 + arity) * sum(map(len, parts)))
        codes = np.concatenate(parts) if parts else np.empty(0, np.int64)
        out = np.empty((arity, len(codes)), np.int64)
        aside(out.size, self._decode_into, relation, codes, out)
        return out

    def _decode_into(self, relation: int, codes: Ints, out: Ints) -> None:
        """Write the values of rows into `out`, int64[arity, n]."""
        layout = self.layouts[relation]
        for column, domain in enumerate(self.domains.columns[relation]):
            values = self.ids[domain].values
            if isinstance(layout, CodeLayout):
                decode_column(codes, layout.shift(column), (1 << layout.bits[column]) - 1, values, out[column])
            else:
                out[column] = values[layout.ids(codes, column)]

    def id_of(self, value: int, relation: int, column: int) -> int:
        """Return the id of a value that a rule mentions in a column."""
        return int(self.ids[self.domains.columns[relation][column]].lookup(np.array([value], np.int64))[0])

    # Relations

    def copied(self, rows: Sequence[Ints | None]) -> list[Ints | None]:
        """Return the rows of all relations that are copies, given those of the others."""
        pairs = zip(self.system.copies, self.system.ends, strict=True)
        return [without_equal(rows[relation], ends) for relation, ends in pairs]

    def _add(self, relation: int, codes: Ints) -> None:
        """Add new rows to the indexes of their relation, and to its log if rules only read it."""
        if relation >= self.system.derived:
            self._read[relation].insert(codes)
        for (of, _, _), index in self.indexes.items():
            if of == relation:
                index.add(codes)

    def _index(self, relation: int, columns: tuple[int, ...], keys: int) -> CodeIndex | ChainIndex:
        """Return the index of a relation by some columns; build it on first use."""
        name = relation, columns, keys
        if name not in self.indexes:
            index = self.indexes[name] = self._new_index(relation, columns, keys)
            parts = self._codes(relation)
            if parts:
                index.add(np.concatenate(parts))
        return self.indexes[name]

    def _new_index(self, relation: int, columns: tuple[int, ...], keys: int) -> CodeIndex | ChainIndex:
        """Return an empty index. Derived relations grow in each round, and have chains where these can hold them."""
        layout = self.layouts[relation]
        if self._only_grows(relation) and ChainIndex.can_index(layout, columns, keys):
            assert isinstance(layout, CodeLayout)
            return ChainIndex(layout, columns)
        return CodeIndex(layout, columns, keys)

    def _only_grows(self, relation: int) -> bool:
        """Return whether rows are added to a relation in each round, and none is removed."""
        return relation < self.system.derived

    def _codes(self, relation: int) -> list[Ints]:
        """Return the codes of all rows of a relation, in parts."""
        if relation < self.system.derived:
            return list(self._derived[relation].runs())
        return [self._read[relation].current()]


def without_equal(rows: Ints | None, pairs: tuple[tuple[int, int], ...]) -> Ints | None:
    """Return rows, int64[arity, n], without those that have equal values in each of some pairs of columns."""
    if rows is None or not pairs:
        return rows
    differs = np.logical_or.reduce([rows[one] != rows[other] for one, other in pairs])
    return rows if differs.all() else np.ascontiguousarray(rows[:, differs])

"""A maintained fixed point of rules whose inputs are multisets: a row is there if its count is positive.

    fixpoint = MultisetFixpoint(system, ports)
    changes = fixpoint.count_changes(updates of each port)     the rows of each relation that appear and disappear
    fixpoint.change(changes)                           as `MaintainedFixpoint` does

A port is a collection from outside with rows of one relation. A relation with several ports holds the rows of all.
Rules know sets only. While a row has a negative count (`is_irregular`), it may cancel others in a loop, and the caller
must compute the loop instead (`kpg.seminaive.counted_bodies`). Cost: a lookup for each changed row. While all rows that
were ever inserted have the count 1, as in most relations, no counts are kept: the first change after the load enters
them, 16 bytes for a row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from kpg.columns.updates import Ints
from kpg.seminaive.code_layout import RowLayout, recode
from kpg.seminaive.code_set import CodeLevels
from kpg.seminaive.counted_bodies import Multiset, consolidated, no_rows
from kpg.seminaive.level_update import Flags
from kpg.seminaive.maintained import MaintainedFixpoint, RowChange


class RulePort(NamedTuple):
    """An input: the relation whose rows it holds, and whether it holds each row once by its form."""

    relation: int
    is_set: bool


class Changed(NamedTuple):
    """Which of some rows appear, and which disappear."""

    added: Flags
    removed: Flags


class PortCounts:
    """The counts of the rows of one port; without a table as long as all of them are 1."""

    def __init__(self, is_own: bool) -> None:
        self.is_own = is_own  # whether the rows of its relation are its rows
        self.is_loaded = False
        self.table: CodeLevels | None = None  # the positive counts
        self.owed: dict[int, int] = {}  # the negative counts

    def change(self, codes: Ints, diffs: Ints, width: int, current: Callable[[], Ints]) -> Changed:
        """Add diffs to the counts of rows. `current` returns the codes of all rows, while their counts are 1."""
        if not self.is_loaded and self.is_own and bool((diffs == 1).all()):
            self.is_loaded = len(codes) > 0
            every = np.ones(len(codes), np.bool_)
            return Changed(every, ~every)
        if self.table is None:
            self.table = CodeLevels(width)
            if self.is_loaded:
                self.table.put(current(), 1)
            self.is_loaded = True
        before = np.maximum(self.table.get(codes), 0)
        if self.owed:
            before = np.array(
                [self.owed.get(code, old) for code, old in zip(codes.tolist(), before.tolist(), strict=True)]
            )
        after = before + diffs
        self.table.put_each(codes, np.where(after > 0, after, -1))
        if self.owed or int(after.min(initial=0)) < 0:
            for code, count in zip(codes.tolist(), after.tolist(), strict=True):
                self.owed.pop(code, None)
                if count < 0:
                    self.owed[code] = count
        return Changed((before <= 0) & (after > 0), (before > 0) & (after <= 0))

    def items(self, current: Callable[[], Ints]) -> tuple[Ints, Ints]:
        """Return the codes of all rows, and their counts."""
        if self.table is None:
            codes = current() if self.is_loaded else np.empty(0, np.int64)
            return codes, np.ones(len(codes), np.int64)
        codes, counts = self.table.items()
        owed = np.array(list(self.owed.items()), np.int64).reshape(-1, 2)
        return np.concatenate([codes, owed[:, 0]]), np.concatenate([counts, owed[:, 1]])

    def put(self, codes: Ints, counts: Ints, width: int) -> None:
        """Fill an empty table."""
        self.table = CodeLevels(width)
        self.table.put_each(codes[counts > 0], counts[counts > 0])
        self.owed = dict(zip(codes[counts < 0].tolist(), counts[counts < 0].tolist(), strict=True))

    def recode(self, before: RowLayout, after: RowLayout, width: int) -> None:
        """Change the layout of all codes."""
        if self.table is not None:
            codes, counts = self.table.items()
            self.table = CodeLevels(width)
            self.table.put_each(recode(codes, before, after), counts)
        if self.owed:
            codes = recode(np.array(list(self.owed), np.int64), before, after)
            self.owed = dict(zip(codes.tolist(), self.owed.values(), strict=True))

    @property
    def nbytes(self) -> int:
        """The size of the table in bytes."""
        return 0 if self.table is None else self.table.nbytes


@dataclass(slots=True)
class MultisetFixpoint(MaintainedFixpoint):
    """The relations of a rule system, and the counts of the rows of its ports."""

    ports: tuple[RulePort, ...] = ()
    counts: list[PortCounts] = field(default_factory=list)  # of each port
    shared: dict[int, PortCounts] = field(default_factory=dict)  # relation: the number of its ports that have each row

    def __post_init__(self) -> None:
        MaintainedFixpoint.__post_init__(self)
        relations = [port.relation for port in self.ports]
        self.counts = [PortCounts(relations.count(relation) == 1) for relation in relations]
        self.shared = {relation: PortCounts(True) for relation in relations if relations.count(relation) > 1}

    @property
    def is_irregular(self) -> bool:
        """Whether a row has a negative count."""
        return any(counts.owed for counts in self.counts)

    def nbytes(self) -> int:
        return MaintainedFixpoint.nbytes(self) + sum(counts.nbytes for counts in (*self.counts, *self.shared.values()))

    def count_changes(self, parts: list[Multiset]) -> list[RowChange | None]:
        """Add the changes of each port to its counts; return the rows that appear in each relation and disappear."""
        blocks: list[list[Ints]] = [[] for _ in self.system.arities]
        for port, part in zip(self.ports, parts, strict=True):
            blocks[port.relation].append(part.rows)
        self._assign_ids(blocks)
        changes: list[list[RowChange]] = [[] for _ in self.system.arities]
        for port, counts, part in zip(self.ports, self.counts, parts, strict=True):
            if len(part.counts):
                changes[port.relation].append(self._port_change(port, counts, part))
        last = len(self.system.arities) - len(self.system.copies)
        return [self._relation_change(relation, changes[relation]) for relation in range(last)]

    def _port_change(self, port: RulePort, counts: PortCounts, part: Multiset) -> RowChange:
        if port.is_set and counts.is_own:
            counts.is_loaded = True
            return row_change(part.rows, Changed(part.counts > 0, part.counts < 0))
        return row_change(part.rows, self._counted(port.relation, counts, part))

    def _counted(self, relation: int, counts: PortCounts, part: Multiset) -> Changed:
        codes, width = self._encode(relation, part.rows), self.layout(relation).width
        return counts.change(codes, part.counts, width, lambda: self._given_codes(relation))

    def _relation_change(self, relation: int, changes: list[RowChange]) -> RowChange | None:
        """Return the change of a relation, from those of its ports."""
        if relation not in self.shared:
            return changes[0] if changes else None
        if not changes:
            return None
        rows = [part for change in changes for part in change]
        diffs = [np.full(part.shape[1], (1, -1)[number % 2]) for number, part in enumerate(rows)]
        part = consolidated(Multiset(np.concatenate(rows, axis=1), np.concatenate(diffs)))
        return row_change(part.rows, self._counted(relation, self.shared[relation], part))

    def rows_of_port(self, number: int) -> Multiset:
        """Return the rows of a port with their counts."""
        relation = self.ports[number].relation
        codes, counts = self.counts[number].items(lambda: self._given_codes(relation))
        return Multiset(self.decode(relation, [codes]), counts) if len(codes) else no_rows(self.layout(relation).arity)

    def derived_rows_of(self, relation: int) -> Ints:
        """Return all rows of a derived relation, int64[arity, n]."""
        return np.concatenate([no_rows(self.layout(relation).arity).rows, *self.rows_of(relation)], axis=1)

    @property
    def allowed_rounds(self) -> int:
        """The highest level that a row may have. A first load counts the rows of level 0, too."""
        return self.system.max_rounds + bool(self._rounds_of)

    def _encode_again(self) -> None:
        ports = [(port.relation, counts) for port, counts in zip(self.ports, self.counts, strict=True)]
        kept = [
            (relation, counts, *self._taken(relation, counts))
            for relation, counts in (*ports, *self.shared.items())
            if counts.table is not None
        ]
        MaintainedFixpoint._encode_again(self)
        blocks: list[list[Ints]] = [[] for _ in self.system.arities]
        for relation, _, rows, _ in kept:
            blocks[relation].append(rows)
        self._assign_ids(blocks)  # of rows with negative counts, which are nowhere else
        for relation, counts, rows, numbers in kept:
            counts.put(self._encode(relation, rows), numbers, self.layout(relation).width)
        self._counted_values = sum(map(len, self.ids))

    def _taken(self, relation: int, counts: PortCounts) -> Multiset:
        """Return the rows of a table of counts, which is empty then."""
        codes, numbers = counts.items(lambda: self._given_codes(relation))
        counts.table, counts.owed = None, {}
        return Multiset(self.decode(relation, [codes]), numbers)

    def _widen(self, bits: list[int]) -> None:
        before = self.layouts
        MaintainedFixpoint._widen(self, bits)
        for port, counts in zip(self.ports, self.counts, strict=True):
            layout = self.layout(port.relation)
            counts.recode(before[port.relation], layout, layout.width)
        for relation, counts in self.shared.items():
            counts.recode(before[relation], self.layout(relation), self.layout(relation).width)


def row_change(rows: Ints, changed: Changed) -> RowChange:
    """Return the rows that appear and disappear."""
    if changed.added.all():
        return RowChange(rows, rows[:, :0])
    return RowChange(np.ascontiguousarray(rows[:, changed.added]), np.ascontiguousarray(rows[:, changed.removed]))

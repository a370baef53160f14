"""Base relations: the rows of a service, and the transactions that change them.

    catalog.encode_changes(changes)    changes by relation, as encoded columns; a wrong change is refused by number
    catalog.encode_blocks(blocks)      the same for blocks of rows; other requests run while large ones are encoded
    catalog.transact(encoded)          all of them at one time, or none

A user gives changes; the engine stores updates. The semantics of a relation turn changes into updates, given the
current rows with the touched keys (`kpg.columns.resolve_changes`): those in the base arrangement of the relation, and
those inserted at the open time. Several workers do this where the rows are. The write times of a last-write-wins
attribute are an input of their own, so that the index of the attribute is one of entity and value, as queries read it.
Cost: one index lookup per touched key, and a few sorts of the changes and of the current rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from kpg.columns.consolidation import consolidate
from kpg.columns.lane_values import MAX
from kpg.columns.resolve_changes import resolve_changes
from kpg.columns.schema import Schema
from kpg.columns.table_rows import decode, encode
from kpg.columns.updates import Ints, Updates, constant
from kpg.errors import Closed, InUse, SchemaMismatch, UndefinedName
from kpg.query.source_text import did_you_mean
from kpg.service.named_relations import NamedRelations
from kpg.service.relation_declarations import RelationDeclaration

if TYPE_CHECKING:
    from kpg.api.contracts import Arrangement, Database, Input

ROWS_PER_PART: Final = 2_000  # of a block that are encoded between two pauses: some milliseconds


class Change(NamedTuple):
    """A row of a relation to insert (+1) or remove (-1)."""

    relation: str
    row: tuple[Any, ...]
    diff: int = 1


class ChangeBlock(Protocol):
    """Rows of one relation, all with the same diff."""

    @property
    def relation(self) -> str:
        """The name of the relation."""

    @property
    def rows(self) -> Sequence[tuple[Any, ...]]:
        """The rows."""

    @property
    def diff(self) -> int:
        """1 inserts them, -1 removes them."""


class EncodedChanges(NamedTuple):
    """The changes of one relation in a transaction, encoded."""

    relation: BaseRelation
    data: Ints
    diffs: Ints


class Catalog:
    """The base relations of a service by name."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.relations: dict[str, BaseRelation] = {}  # changed by `put` and `remove` only
        self.named = NamedRelations()  # the same, as programs name them

    def add(self, declaration: RelationDeclaration, keep_on_disk: bool = True) -> None:
        """Create a relation."""
        self.put(BaseRelation(self.db, declaration, keep_on_disk))

    def put(self, relation: BaseRelation) -> None:
        """Add a relation, or replace the one with its name."""
        self.relations[relation.name] = relation
        self.named.put(relation.declaration.in_program())

    def remove(self, name: str) -> None:
        """Remove a relation, if there is one with this name."""
        self.relations.pop(name, None)
        self.named.remove(name)

    def find(self, name: str) -> BaseRelation:
        """Return a relation by name; raise if there is none."""
        if name not in self.relations:
            raise UndefinedName(f"no relation is called {name!r}", hint=did_you_mean(name, self.relations))
        return self.relations[name]

    def drop(self, name: str) -> None:
        """Drop a relation and its rows; raise while a query reads it."""
        self.find(name).drop()
        self.remove(name)

    # Transactions

    def transact(
        self, encoded: list[EncodedChanges], origin: tuple[str, int] | None, before: Callable[[], None] | None = None
    ) -> int:
        """Apply changes, all at one time, and return that time; `before` may apply others first."""

        def fill(db: Database) -> None:
            if before is not None:
                before()
            for relation, data, diffs in encoded:
                relation.apply(data, diffs)

        return self.db.transact(fill, origin=origin)

    def encode_rows(self, relation: str, rows: Any, diff: int) -> list[EncodedChanges]:
        """Encode many rows of one relation, all with the same diff."""
        target = self.find(relation)
        data = target.encode(rows)
        return [EncodedChanges(target, data, np.full(data.shape[1], diff, np.int64))]

    def encode_blocks(self, blocks: Sequence[ChangeBlock]) -> list[EncodedChanges]:
        """Encode blocks of rows as `encode_changes` would; large ones in parts, between which other requests run."""
        if len_of(blocks) > ROWS_PER_PART and are_plain(blocks, self.relations):
            held = UnappliedRows()
            self.db.holders.add(held)
            try:
                encoded = [held.encode(self.db, self.relations[block.relation], block) for block in blocks]
            except (SchemaMismatch, TypeError):
                pass  # below, the error names the first wrong change
            else:
                if all(self.find(one.relation.name) is one.relation for one in encoded):  # it may have been dropped
                    return encoded
        return self.encode_changes([Change(block.relation, row, block.diff) for block in blocks for row in block.rows])

    def encode_changes(self, changes: Sequence[Change]) -> list[EncodedChanges]:
        """Encode changes by relation; an error names the first wrong change."""
        numbers: dict[str, list[int]] = {}  # by relation, the positions of its changes
        for number, change in enumerate(changes):
            if change.relation not in numbers:
                numbers[change.relation] = []
                if change.relation not in self.relations:
                    hint = did_you_mean(change.relation, self.relations)
                    raise UndefinedName(f"change {number}: no relation is called {change.relation!r}", hint=hint)
            numbers[change.relation].append(number)
        return [self._encode(self.relations[name], of_relation, changes) for name, of_relation in numbers.items()]

    def _encode(self, relation: BaseRelation, numbers: list[int], changes: Sequence[Change]) -> EncodedChanges:
        if relation.closed:
            raise Closed(f"change {numbers[0]}: {relation.name} is closed")
        diffs = [changes[number].diff for number in numbers]
        if not set(map(type, diffs)) <= {int} or 0 in diffs:
            number, diff = next((n, d) for n, d in zip(numbers, diffs, strict=True) if type(d) is not int or d == 0)
            raise SchemaMismatch(f"change {number}: {diff!r} is no diff", hint="+1 inserts a row, -1 removes it.")
        if max(map(abs, diffs)) > MAX:
            number, diff = next((n, d) for n, d in zip(numbers, diffs, strict=True) if abs(d) > MAX)
            raise SchemaMismatch(f"change {number}: the diff {diff} does not fit 64 bits")
        try:
            data = relation.encode([tuple(changes[number].row) for number in numbers])
        except (SchemaMismatch, TypeError):
            for number in numbers:
                check_row(relation, number, changes[number])
            raise
        return EncodedChanges(relation, data, np.array(diffs, np.int64))


def len_of(blocks: Sequence[ChangeBlock]) -> int:
    """Return the number of rows in some blocks."""
    return sum(len(block.rows) for block in blocks)


def are_plain(blocks: Sequence[ChangeBlock], relations: Mapping[str, BaseRelation]) -> bool:
    """Return whether blocks are of different relations that accept changes, and have diffs."""
    targets = {block.relation for block in blocks}
    accept = targets <= relations.keys() and not any(relations[name].closed for name in targets)
    return accept and len(targets) == len(blocks) and all(0 < abs(block.diff) <= MAX for block in blocks)


class UnappliedRows:
    """Rows that are encoded in parts, and not applied yet: the db keeps the symbols in them."""

    def __init__(self) -> None:
        self._parts: list[tuple[Schema, Ints]] = []

    def encode(self, db: Database, relation: BaseRelation, block: ChangeBlock) -> EncodedChanges:
        """Encode a block, and let other requests run between its parts."""
        parts = [relation.encode([])]
        for start in range(0, len(block.rows), ROWS_PER_PART):
            parts.append(relation.encode([tuple(row) for row in block.rows[start : start + ROWS_PER_PART]]))
            self._parts.append((relation.change_schema, parts[-1]))
            db.pause_request()
        data = np.concatenate(parts, axis=1)
        return EncodedChanges(relation, data, np.full(data.shape[1], block.diff, np.int64))

    def unread(self) -> Iterator[tuple[Schema, Updates]]:
        """Yield the rows, as outputs do."""
        for schema, data in self._parts:
            yield schema, Updates(data, constant((0,)), constant((1,)))


def check_row(relation: BaseRelation, number: int, change: Change) -> None:
    """Raise if the row of a change cannot be encoded, naming the change by its number."""
    try:
        relation.encode([tuple(change.row)])
    except SchemaMismatch as error:
        what = error.what.removeprefix("row 0 ").replace(" in row 0", "")
        raise SchemaMismatch(
            f"change {number} of {relation.name}: {what}", detail=error.detail, hint=error.hint
        ) from None
    except TypeError:
        raise SchemaMismatch(
            f"change {number} of {relation.name}: {change.row!r} is no row", hint="Give a tuple of values."
        ) from None


class BaseRelation:
    """A declared relation and the input that holds its rows."""

    def __init__(self, db: Database, declaration: RelationDeclaration, keep_on_disk: bool = True) -> None:
        self.db = db
        self.declaration = declaration
        self.name = declaration.name
        self.schema = declaration.schema
        existing = db.inputs.get(declaration.name)
        self.input: Input = existing if existing is not None and existing.is_log else db.input(
            declaration.name, declaration.schema, key=declaration.key or None, keep_on_disk=keep_on_disk
        )  # fmt: skip
        self._write_times: Input | None = None
        if declaration.written:
            times = Schema.of({"e": declaration.schema.types[0], "t": int})
            self._write_times = db.input(f"{declaration.name} written", times, key="e")
        self.change_schema = self.schema if self._write_times is None else self.schema.concat(Schema.of({"t": int}))

    @property
    def source(self) -> Input | Arrangement:
        """The rows, for queries that are built on them."""
        return self.input

    @property
    def closed(self) -> bool:
        """Whether further changes are refused."""
        return self.input.closed

    def look_up(
        self, columns: tuple[str, ...], rows: list[tuple[Any, ...]], as_of: int | None
    ) -> Callable[[], pa.Table] | None:
        """Return a function that reads the rows with some values from an index by these columns, if there is one."""
        return self.input.look_up(columns, rows, as_of)

    def encode(self, rows: Any) -> Ints:
        """Encode rows as integer columns; an error names the row."""
        if self.input.is_log:
            raise InUse(f"{self.name} is written by the db itself")
        if not self.declaration.columns and isinstance(rows, list):
            rows = [row or (0,) for row in rows]
        return encode(self.change_schema, rows, self.db.symbols)

    def decode(self, data: Ints) -> pa.Table:
        """Return the rows of encoded changes as an Arrow table."""
        return decode(self.change_schema, data, self.db.symbols)

    def apply(self, data: Ints, diffs: Ints) -> None:
        """Apply encoded changes at the open time."""
        if not data.shape[1]:
            return
        if self.declaration.semantics == "raw":
            self._push(self.input, Updates(data, constant((0,)), diffs.reshape(1, -1)))
            return
        self.input.keep_by(*self.declaration.indexed_by)
        if self._write_times is not None:
            self._apply_timed(self._write_times, data, diffs)
            return
        self.input.change_lanes(data, diffs, self.declaration.key or self.schema.names, self.declaration.order)

    def _apply_timed(self, write_times: Input, data: Ints, diffs: Ints) -> None:
        values, times = (source.present(("e",), data[:1]).data for source in (self.input, write_times))
        current = np.concatenate([values, times[1:]])  # both have each entity once, in the same order
        width = values.shape[0]
        updates = resolve_changes(current, data, diffs, [0], (width,))
        for source, lanes in ((self.input, list(range(width))), (write_times, [0, width])):
            projected = Updates(np.ascontiguousarray(updates.data[lanes]), updates.times, updates.diffs)
            self._push(source, consolidate(projected))

    def _push(self, source: Input, updates: Updates) -> None:
        now = constant(self.db.time.elements[0])
        source.take_lanes(Updates(updates.data, now, updates.diffs))

    def close(self) -> None:
        """Close the input: the rows stay, and further changes are refused."""
        self.input.close()
        if self._write_times is not None:
            self._write_times.close()

    def drop(self) -> None:
        """Drop the input and its rows; raise while a query reads them."""
        if self.input.is_log:
            raise InUse(f"{self.name} is written by the db itself")
        self.input.drop()
        if self._write_times is not None:
            self._write_times.drop()

"""Queries for the rows of a table with a key that the condition gives as constants.

    SELECT … FROM t WHERE id = 7 AND …         looks up the rows with that key, and evaluates the rest on them

No dataflow is installed. The rows are those that the dataflow of the query would have: a condition holds only for rows
with the key, so other rows neither count nor fail. The cost is that of the rows with the key, not of the table. Keys
are the primary key and the columns of an index.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kpg.errors import DataError
from kpg.sql.relational.relations import BoundRelation, Filter, Project, Scan
from kpg.sql.relational.scalars import SUBQUERIES, And, Column, ColumnValue, Constant, Scalar, ScalarCall, walk
from kpg.sql.session.evaluate_rows import chosen_columns, evaluate_scalars, has_subquery

if TYPE_CHECKING:
    from kpg.api.contracts import Arrangement
    from kpg.columns.schema import Schema
    from kpg.sql.catalog.database_catalog import DatabaseCatalog

INTEGERS: Final = ("smallint", "integer", "bigint")
KEY_TYPES: Final = {**dict.fromkeys(INTEGERS, INTEGERS), "text": ("text",), "uuid": ("uuid",), "date": ("date",)}

RowsInHand = tuple[pa.Table, "Schema"]


@dataclass(frozen=True, slots=True)
class KeyLookup:
    """An arrangement of a table, and the values of its key."""

    arrangement: Arrangement
    key: tuple[Any, ...]


def looked_up_rows(catalog: DatabaseCatalog, relation: BoundRelation, as_of: int | None) -> RowsInHand | None:
    """Return the rows of a relation by a key, without a dataflow; None if it needs one, or if a row fails.

    The dataflow then has the message for the row.
    """
    try:
        return looked_up(catalog, relation, as_of)
    except DataError:
        return None


def looked_up(catalog: DatabaseCatalog, relation: BoundRelation, as_of: int | None) -> RowsInHand | None:
    """Return the rows of projections and a condition over a table, by a key; None if there is no key."""
    if isinstance(relation, Project) and relation.values and not has_subquery(relation.values):
        inner = looked_up(catalog, relation.input, as_of)
        if inner is None:
            return None
        chosen = chosen_columns(relation)
        if chosen is not None:
            return inner[0].select(chosen), inner[1].select([inner[1].names[at] for at in chosen])
        return evaluate_scalars(catalog.db, relation.values, relation.input.columns, *inner)
    if not isinstance(relation, Filter) or not isinstance(relation.input, Scan):
        return None
    if any(isinstance(part, SUBQUERIES) for part in walk(relation.condition)):
        return None
    lookup = find_lookup(catalog, relation.input, relation.condition)
    return None if lookup is None else matching_rows(catalog, relation, relation.input, lookup, as_of)


def find_lookup(catalog: DatabaseCatalog, scan: Scan, condition: Scalar) -> KeyLookup | None:
    """Return an arrangement of a table whose key columns a condition equates with constants."""
    entry = catalog.tables.get(scan.source)
    if entry is None or not entry.retained:
        return None
    given = dict(key_values(scan, condition))
    if entry.primary_key and all(name in given for name in entry.primary_key):
        arrangement = catalog.key_index(scan.source, entry.primary_key)
        return KeyLookup(arrangement, tuple(given[name] for name in arrangement.keys))
    for index in catalog.indexes_of(scan.source):
        if all(name in given for name in index.arrangement.keys):
            return KeyLookup(index.arrangement, tuple(given[name] for name in index.arrangement.keys))
    return None


def key_values(scan: Scan, condition: Scalar) -> Iterator[tuple[str, Any]]:
    """Yield the columns that must have one value for the condition to hold, and that value."""
    fields = dict(zip(scan.columns, scan.fields, strict=True))
    for term in terms_of(condition):
        if not isinstance(term, ScalarCall) or term.function.name != "=" or len(term.arguments) != 2:
            continue
        for left, right in (term.arguments, term.arguments[::-1]):
            if isinstance(left, ColumnValue) and left.column in fields and isinstance(right, Constant):
                if right.value is not None and right.type.name in KEY_TYPES.get(left.type.name, ()):
                    yield fields[left.column], right.value


def is_only_key(scan: Scan, condition: Scalar, lookup: KeyLookup) -> bool:
    """Return whether a condition says no more than that the columns of a key have its values."""
    terms = list(terms_of(condition))
    given = [value for term in terms for value in key_values(scan, term)]
    return len(terms) == len(given) == len(lookup.key) and {name for name, _ in given} == set(lookup.arrangement.keys)


def terms_of(condition: Scalar) -> Iterable[Scalar]:
    """Return the conditions that must all hold."""
    if isinstance(condition, And):
        return [inner for term in condition.terms for inner in terms_of(term)]
    return [condition]


def matching_rows(
    catalog: DatabaseCatalog, relation: Filter, scan: Scan, lookup: KeyLookup, as_of: int | None
) -> RowsInHand:
    """Return the rows with a key on which the whole condition holds, with the columns of the scan."""
    db = catalog.db
    if db.sealed is None:
        db.advance(wait=not db.answers_lag)
    schema = db.inputs[scan.source].schema.select(scan.fields)
    rows = lookup.arrangement.lookup_many([lookup.key], as_of=as_of).select(list(scan.fields))
    if not rows.num_rows or is_only_key(scan, relation.condition, lookup):
        return rows, schema
    columns: tuple[Column, ...] = scan.columns
    results, _ = evaluate_scalars(db, [relation.condition], columns, rows, schema)
    condition: Any = results.column(0)
    return rows.filter(pc.fill_null(condition, False)), schema

"""The denotation of each operator: a function of plain multisets, which are dicts from row to count.

A row is a tuple, and columns are positions in it. The code is written to be obviously right, not fast. Counts may be
negative, as they may be in the engine for a while:

    a row is *present*        if its count is positive         (distinct, semijoin, antijoin, min, max, top_k)
    a group is *present*      if its counts do not sum to 0    (count, sum, avg)
    everything else           is linear or bilinear in counts

Counts of rows have any size. A count or sum *in* a row that does not fit 64 bits is OVERFLOW: an error of the engine.

The functions have the names of the operators, so import the module: `from kpg.testing import denotations`.
"""

from __future__ import annotations

import builtins
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from kpg.testing.model import OVERFLOW

Row: TypeAlias = tuple[Any, ...]
Multiset: TypeAlias = dict[Row, int]
Columns: TypeAlias = tuple[int, ...]
Condition: TypeAlias = Callable[[Row, Row], bool | None]  # on a pair of rows
Reducer: TypeAlias = Callable[[Row, list[tuple[Row, int]]], Iterable[tuple[Row, int]]]


def consolidate(rows: Iterable[tuple[Row, int]]) -> Multiset:
    """Return each row once, with the sum of its counts, unless the sum is zero."""
    total: defaultdict[Row, int] = defaultdict(int)
    for row, count in rows:
        total[row] += count
    return {row: count for row, count in total.items() if count}


def at(row: Row, columns: Columns) -> Row:
    """Return the given columns of a row."""
    return tuple(row[column] for column in columns)


def rest(row: Row, columns: Columns) -> Row:
    """Return all columns of a row but the given ones."""
    return tuple(value for column, value in enumerate(row) if column not in columns)


# Linear operators: the result of each row depends on no other row.


def map(rows: Multiset, function: Callable[[Row], Row]) -> Multiset:
    """Replace each row by another."""
    return consolidate((function(row), count) for row, count in rows.items())


def select(rows: Multiset, columns: Columns) -> Multiset:
    """Reduce each row to the given columns, in their order; a special case of map."""
    return map(rows, lambda row: at(row, columns))


def filter(rows: Multiset, keep: Callable[[Row], bool]) -> Multiset:
    """Keep the rows for which `keep` holds."""
    return {row: count for row, count in rows.items() if keep(row)}


def flat_map(rows: Multiset, function: Callable[[Row], Iterable[Row]]) -> Multiset:
    """Replace each row by any number of others."""
    return explode(rows, lambda row: [(image, 1) for image in function(row)])


def explode(rows: Multiset, function: Callable[[Row], Iterable[tuple[Row, int]]]) -> Multiset:
    """Replace each row by any number of others, each with a count that multiplies the row's own."""
    return consolidate((image, count * times) for row, count in rows.items() for image, times in function(row))


def concat(*collections: Multiset) -> Multiset:
    """Return all rows of all collections; counts add."""
    return consolidate(pair for rows in collections for pair in rows.items())


def negate(rows: Multiset) -> Multiset:
    """Return the same rows with counts of the opposite sign."""
    return {row: -count for row, count in rows.items()}


# Joins: rows of two collections with equal keys.


def join(left: Multiset, right: Multiset, left_key: Columns, right_key: Columns) -> Multiset:
    """Return the left row, then the right row without its key, for every pair of equal keys; counts multiply."""
    return consolidate(
        (a + rest(b, right_key), m * n)
        for a, m in left.items()
        for b, n in right.items()
        if at(a, left_key) == at(b, right_key)
    )


def semijoin(left: Multiset, right: Multiset, left_key: Columns, right_key: Columns) -> Multiset:
    """Return the left rows with a key that is present on the right; the right count does not matter."""
    keys = distinct(select(right, right_key))
    return filter(left, lambda row: at(row, left_key) in keys)


def antijoin(left: Multiset, right: Multiset, left_key: Columns, right_key: Columns) -> Multiset:
    """Return the left rows that `semijoin` drops."""
    return concat(left, negate(semijoin(left, right, left_key, right_key)))


def matches(
    a: Row, b: Row, left_key: Columns, right_key: Columns, where: Condition | None = None, nulls_equal: bool = True
) -> bool:
    """Return whether two rows are a pair: their keys are equal, and the condition is true. Null may equal null."""
    key = at(a, left_key)
    return key == at(b, right_key) and (nulls_equal or None not in key) and (where is None or where(a, b) is True)


def join_where(
    left: Multiset,
    right: Multiset,
    left_key: Columns,
    right_key: Columns,
    how: str,
    widths: tuple[int, int],
    where: Condition | None = None,
    nulls_equal: bool = True,
) -> Multiset:
    """Return a join of any form for counts that are not negative; `widths` are the column counts of both sides.

    A pair is the left row, then the right row without its key. A row without a match has null in the columns of the
    other side, except for the key.
    """

    def is_pair(a: Row, b: Row) -> bool:
        return matches(a, b, left_key, right_key, where, nulls_equal)

    with_match = filter(left, lambda a: any(is_pair(a, b) for b in right))
    if how == "semi":
        return with_match
    alone = concat(left, negate(with_match))
    if how == "anti":
        return alone
    rows = [(a + rest(b, right_key), m * n) for a, m in left.items() for b, n in right.items() if is_pair(a, b)]
    if how in ("left", "full"):
        rows += [(a + (None,) * (widths[1] - len(right_key)), m) for a, m in alone.items()]
    if how in ("right", "full"):
        for b, n in right.items():
            if not any(is_pair(a, b) for a in left):
                key = dict(zip(left_key, at(b, right_key), strict=True))
                rows.append((tuple(key.get(column) for column in range(widths[0])) + rest(b, right_key), n))
    return consolidate(rows)


# Sets and bags: rows compared by all columns.


def intersect_all(left: Multiset, right: Multiset) -> Multiset:
    """Return each row with the lesser of its two counts: the left count without what the right one leaves of it."""
    return concat(left, negate(except_all(left, right)))


def except_all(left: Multiset, right: Multiset) -> Multiset:
    """Return each row with its left count minus its right count, if that is positive."""
    left_over = concat(left, negate(right))
    fitting = {row: count for row, count in left_over.items() if 0 < count < 2**63}
    return fitting | {(*row, OVERFLOW): 1 for row, count in left_over.items() if abs(count) >= 2**63}


# Reductions: all rows of a key together.


def groups(rows: Multiset, key: Columns) -> dict[Row, Multiset]:
    """Return the rows by key; each row is still whole."""
    by_key: defaultdict[Row, Multiset] = defaultdict(dict)
    for row, count in rows.items():
        by_key[at(row, key)][row] = count
    return by_key


def reduce(rows: Multiset, key: Columns, function: Reducer) -> Multiset:
    """Return the key, then each result of `function(key, [(value, count), ...])`; values are sorted and keyless."""
    return consolidate(
        (group + image, count)
        for group, members in groups(rows, key).items()
        for image, count in function(group, sorted((rest(row, key), count) for row, count in members.items()))
    )


def distinct(rows: Multiset) -> Multiset:
    """Return each row that is present, once."""
    return threshold(rows, 1)


def threshold(rows: Multiset, least: int) -> Multiset:
    """Return each row with a count of at least `least`, once."""
    return {row: 1 for row, count in rows.items() if count >= least}


def count(rows: Multiset, key: Columns) -> Multiset:
    """Return the key, then its number of rows, counting copies."""
    totals = {group: builtins.sum(members.values()) for group, members in groups(rows, key).items()}
    return {group + (total if abs(total) < 2**63 else OVERFLOW,): 1 for group, total in totals.items() if total}


def sum(rows: Multiset, key: Columns, column: int) -> Multiset:
    """Return the key, then the sum of a column, counting copies."""
    totals = {
        group: builtins.sum(row[column] * count for row, count in members.items())
        for group, members in groups(rows, key).items()
        if builtins.sum(members.values())
    }
    return {group + (total if -(2**63) <= total < 2**63 else OVERFLOW,): 1 for group, total in totals.items()}


def avg(rows: Multiset, key: Columns, column: int) -> Multiset:
    """Return the key, then the sum of a column divided by the count."""
    sizes = {row[:-1]: row[-1] for row in count(rows, key)}
    return {row[:-1] + (row[-1] / sizes[row[:-1]],): 1 for row in sum(rows, key, column)}


def min(rows: Multiset, key: Columns, column: int) -> Multiset:
    """Return the key, then the least value of a column among the rows that are present."""
    return {
        group + (builtins.min(row[column] for row in members),): 1
        for group, members in groups(distinct(rows), key).items()
    }


def max(rows: Multiset, key: Columns, column: int) -> Multiset:
    """Return the key, then the greatest value of a column among the rows that are present."""
    return {
        group + (builtins.max(row[column] for row in members),): 1
        for group, members in groups(distinct(rows), key).items()
    }


def top_k(rows: Multiset, key: Columns, column: int, k: int, *, largest: bool = True) -> Multiset:
    """Return the k rows of each key with the largest (or least) value of a column; ties go to the lesser row.

    Copies count: two copies of a row take two of the k positions.
    """
    sign = -1 if largest else 1
    kept: Multiset = {}
    for members in groups(rows, key).values():
        remaining = k
        for row in sorted(members, key=lambda row: (sign * row[column], row)):
            taken = builtins.min(remaining, builtins.max(members[row], 0))
            if taken:
                kept[row] = taken
                remaining -= taken
    return kept


def rows_between(
    rows: Multiset, key: Columns, order: Callable[[Row], Any], limit: int | None, offset: int = 0, copies: bool = True
) -> Multiset:
    """Return the rows of each key at the positions [offset, offset + limit) of an order; counts are not negative.

    `order` maps a row to a sort key, which is different for different rows: see `nulls_last`.
    """
    kept: list[Row] = []
    for members in groups(rows, key).values():
        listed = [row for row in sorted(members, key=order) for _ in range(members[row] if copies else 1)]
        kept += listed[offset:] if limit is None else listed[offset : offset + limit]
    return consolidate((row, 1) for row in kept)


def nulls_last(value: Any) -> tuple[bool, Any]:
    """Return a sort key for a value that may be null."""
    return (value is None, 0 if value is None else value)


def aggregate(rows: Multiset, key: Columns, *functions: Callable[[list[Row]], Any]) -> Multiset:
    """Return the key, then the result of each function of the group's rows, each as often as it occurs."""
    return {
        (*group, *(function(listed) for function in functions)): 1
        for group, members in groups(rows, key).items()
        if (listed := [row for row, count in members.items() for _ in range(count)])
    }


def aggregate_all(rows: Multiset, *functions: Callable[[list[Row]], Any]) -> Multiset:
    """Return one row with the result of each function of all rows, also if there are none."""
    listed = [row for row, count in rows.items() for _ in range(count)]
    return {tuple(function(listed) for function in functions): 1}


def of_values(
    function: Callable[[list[Any]], Any], column: int, where: Callable[[Row], bool | None] | None = None
) -> Callable[[list[Row]], Any]:
    """Return a function of rows: of the sorted values of a column that are not null, where a condition is true."""

    def of_rows(listed: list[Row]) -> Any:
        counted = [row[column] for row in listed if where is None or where(row) is True]
        return function(sorted(value for value in counted if value is not None))

    return of_rows


def argmax(rows: Multiset, key: Columns, column: int) -> Multiset:
    """Return the row of each key with the greatest value of a column; ties go to the lesser row."""
    return top_k(rows, key, column, 1)


def argmin(rows: Multiset, key: Columns, column: int) -> Multiset:
    """Return the row of each key with the least value of a column; ties go to the lesser row."""
    return top_k(rows, key, column, 1, largest=False)


# Recursion.


def iterate(rows: Multiset, step: Callable[[Multiset], Multiset], limit: int = 1000) -> Multiset:
    """Apply `step` to the rows, then to the result, and so on, until the result no longer changes.

    For a monotone step this is the least fixed point at or above the rows.
    """
    for _ in range(limit):
        following = step(rows)
        if following == rows:
            return rows
        rows = following
    raise RecursionError(f"no fixed point within {limit} rounds")

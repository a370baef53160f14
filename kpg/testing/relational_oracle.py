"""The meaning of the bound relational algebra, as naive as possible: rewrites and lowering are tested against it.

    RelationalOracle(tables).rows(relation)      the multiset of its rows, as tuples in the order of its columns

Every node is evaluated row by row, in nested loops, with the values of outer columns in an environment: dependent joins
and subqueries need no special case. A failing row raises `RowFailure`, but a failing conjunct counts only if the others
hold, as in SQL.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

from kpg.sql.relational import relations as r
from kpg.sql.relational import scalars as s

Row: TypeAlias = tuple[Any, ...]
Environment: TypeAlias = dict[s.Column, Any]

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda a, b: int(Fraction(a, b)) if isinstance(a, int) else a / b,
}  # strict ones, by the name of the function


class RowFailure(Exception):
    """A row on which an expression fails."""


@dataclass
class RelationalOracle:
    """Evaluates relations over tables: the names of their fields, and their rows."""

    tables: Mapping[str, tuple[Sequence[str], Sequence[Row]]]
    variables: dict[r.RecursiveVariable, list[Row]] = field(default_factory=dict)

    def rows(self, relation: r.BoundRelation, outer: Environment | None = None) -> list[Row]:
        """Return the rows of a relation; `outer` has the values of outer columns."""
        method = getattr(self, f"_{type(relation).__name__.lower()}")
        rows: list[Row] = method(relation, outer or {})
        return rows

    # Sources

    def _scan(self, node: r.Scan, outer: Environment) -> list[Row]:
        names, rows = self.tables[node.source]
        positions = [list(names).index(name) for name in node.fields]
        return [tuple(row[position] for position in positions) for row in rows]

    def _values(self, node: r.Values, outer: Environment) -> list[Row]:
        return [tuple(self.value(scalar, outer) for scalar in row) for row in node.rows]

    def _functionscan(self, node: r.FunctionScan, outer: Environment) -> list[Row]:
        values = [self.value(scalar, outer) for scalar in node.arguments]
        rows = [] if None in values else [tuple(row) for row in node.function.rows(*values)]
        return [(*row, number) for number, row in enumerate(rows, 1)] if node.ordinality else rows

    def _variablescan(self, node: r.VariableScan, outer: Environment) -> list[Row]:
        return self.variables[node.variable]

    # One input

    def _project(self, node: r.Project, outer: Environment) -> list[Row]:
        return [
            tuple(self.value(value, inner) for value in node.values)
            for inner in self._environments(node.input, outer)
        ]  # fmt: skip

    def _filter(self, node: r.Filter, outer: Environment) -> list[Row]:
        pairs = zip(self.rows(node.input, outer), self._environments(node.input, outer), strict=True)
        return [row for row, inner in pairs if self.holds(node.condition, inner)]

    def _distinct(self, node: r.Distinct, outer: Environment) -> list[Row]:
        return list(dict.fromkeys(self._kept(node, outer)))

    def _kept(self, node: Any, outer: Environment) -> list[Row]:
        """Return the rows of the input in the columns of the node."""
        return [tuple(inner[column] for column in node.columns) for inner in self._environments(node.input, outer)]

    def _toprows(self, node: r.TopRows, outer: Environment) -> list[Row]:
        limit = None if node.limit is None else self.value(node.limit, outer)
        offset = 0 if node.offset is None else self.value(node.offset, outer) or 0
        groups: dict[Row, list[tuple[Row, Row]]] = {}
        for inner in self._environments(node.input, outer):
            row = tuple(inner[column] for column in node.columns)
            order = tuple(sort_key(self.value(key.value, inner), key) for key in node.order)
            groups.setdefault(tuple(inner[key] for key in node.keys), []).append((order, row))
        result: list[Row] = []
        for group in groups.values():
            group.sort(key=lambda pair: (pair[0], tuple(nulls_last(value) for value in pair[1])))
            end = len(group) if limit is None else offset + limit
            while node.ties and limit and 0 < end < len(group) and group[end][0] == group[end - 1][0]:
                end += 1
            result += [row for _, row in group[offset:end]]
        return result

    def _aggregate(self, node: r.Aggregate, outer: Environment) -> list[Row]:
        environments = list(self._environments(node.input, outer))
        sets = node.sets if node.sets is not None else (tuple(range(len(node.keys))),)
        result: list[Row] = []
        for chosen in sets:
            groups: dict[Row, list[Environment]] = {} if chosen else {(): []}
            for inner in environments:
                groups.setdefault(tuple(inner[node.keys[index]] for index in chosen), []).append(inner)
            for key, members in groups.items():
                by_index = dict(zip(chosen, key, strict=True))
                keys = [by_index.get(index) for index in range(len(node.keys))]
                values = [self.aggregate(call, members) for call in node.aggregates]
                bits = [
                    sum((index not in chosen) << at for at, index in enumerate(reversed(indices)))
                    for indices in node.grouping
                ]
                result.append((*keys, *values, *bits))
        return result

    def aggregate(self, call: s.AggregateCall, members: list[Environment]) -> Any:
        """Return the value of an aggregate over the rows of a group."""
        kept = [inner for inner in members if call.filter is None or self.holds(call.filter, inner)]
        values = [tuple(self.value(scalar, inner) for scalar in call.arguments) for inner in kept]
        if not call.arguments:
            return len(kept)
        present = [value[-1] for value in values if value[-1] is not None]
        if call.distinct:
            present = list(dict.fromkeys(present))
        match call.function.lowering:
            case "count":
                return len(present)
            case "sum":
                return sum(present) if present else None
            case "min":
                return min(present, default=None)
            case "max":
                return max(present, default=None)
            case "avg":
                return sum(present) / len(present) if present else None
            case "bool_and":
                return all(present) if present else None
            case "bool_or":
                return any(present) if present else None
        raise ValueError(f"the oracle does not know the aggregate {call.function.lowering}")

    # Two inputs

    def _boundjoin(self, node: r.BoundJoin, outer: Environment) -> list[Row]:
        result: list[Row] = []
        used: set[int] = set()
        right: list[Row] = [] if node.dependent else self.rows(node.right, outer)
        empty = (None,) * len(node.right.columns)
        for row in self.rows(node.left, outer):
            here = {**outer, **dict(zip(node.left.columns, row, strict=True))}
            if node.dependent:
                right = self.rows(node.right, here)
            truths = [
                self.truth(node.condition, {**here, **dict(zip(node.right.columns, other, strict=True))})
                for other in right
            ]
            matches = [number for number, truth in enumerate(truths) if truth is True]
            used.update(matches)
            match node.kind:
                case "inner" | "left" | "full" | "single":
                    if node.kind == "single" and len(matches) > 1:
                        raise RowFailure("more than one row returned by a subquery used as an expression")
                    result += [row + right[number] for number in matches]
                    if not matches and node.kind != "inner":
                        result.append(row + empty)
                case "semi":
                    result += [row] if matches else []
                case "anti":
                    result += [] if matches else [row]
                case "mark":
                    result.append((*row, True if matches else None if None in truths else False))
        if node.kind == "full":
            nulls = (None,) * len(node.left.columns)
            result += [nulls + other for number, other in enumerate(right) if number not in used]
        columns = (*node.left.columns, *(() if node.kind in ("semi", "anti", "mark") else node.right.columns))
        columns += () if node.mark is None else (node.mark,)
        order = [columns.index(column) for column in node.columns]
        return [tuple(row[position] for position in order) for row in result]

    def _setoperation(self, node: r.SetOperation, outer: Environment) -> list[Row]:
        left, right = Counter(self.rows(node.left, outer)), Counter(self.rows(node.right, outer))
        match node.kind:
            case "union":
                combined = left + right
            case "intersect":
                combined = left & right
            case _:
                combined = left - right if node.all else Counter(row for row in left if row not in right)
        return list(combined.elements()) if node.all else list(combined)

    def _boundrecursion(self, node: r.BoundRecursion, outer: Environment) -> list[Row]:
        for definition in node.definitions:
            self.variables[definition.variable] = []
        totals: dict[r.RecursiveVariable, list[Row]] = {entry.variable: [] for entry in node.definitions}
        rounds = 0
        while True:
            before = {entry.variable: self.variables[entry.variable] for entry in node.definitions}
            after: dict[r.RecursiveVariable, list[Row]] = {}
            for entry in node.definitions:
                base = [] if entry.base is None or rounds else self.rows(entry.base, outer)
                step = self.rows(entry.step, outer) if rounds or entry.kind == "replace" else []
                rows = base + step
                if entry.kind == "union":
                    rows = [row for row in dict.fromkeys(rows) if row not in totals[entry.variable]]
                if entry.kind == "replace":
                    totals[entry.variable] = rows
                else:
                    totals[entry.variable] = totals[entry.variable] + rows
                after[entry.variable] = rows
            rounds += 1
            self.variables.update(after)
            replaced = all(entry.kind == "replace" for entry in node.definitions)
            same = all(Counter(before[key]) == Counter(after[key]) for key in after)
            if (replaced and same) or (not replaced and not any(after.values())):
                break
            if node.limit is not None and rounds >= node.limit and not node.error_at_limit:
                break
            if node.limit is not None and rounds > node.limit:
                raise RowFailure("the recursion did not end within its limit")
            if rounds > 1000:
                raise RowFailure("the recursion does not end")
        self.variables.update(totals)
        return self.rows(node.body, outer)

    def _environments(self, relation: r.BoundRelation, outer: Environment) -> Iterator[Environment]:
        for row in self.rows(relation, outer):
            yield {**outer, **dict(zip(relation.columns, row, strict=True))}

    # Scalars

    def holds(self, condition: s.Scalar, inner: Environment) -> bool:
        """Return whether a condition is true; a failing conjunct counts only if the others hold."""
        return self.truth(condition, inner) is True

    def truth(self, condition: s.Scalar, inner: Environment) -> bool | None:
        """Return the truth of a condition of WHERE, ON or HAVING."""
        values: list[bool | None] = []
        failure: RowFailure | None = None
        for term in s.conjuncts(condition):
            try:
                values.append(self.value(term, inner))
            except RowFailure as failed:
                failure = failed
        if failure is not None and all(values):
            raise failure
        return False if False in values or failure is not None else None if None in values else True

    def value(self, scalar: s.Scalar, inner: Environment) -> Any:
        """Return the value of a scalar, None for null."""
        match scalar:
            case s.ColumnValue():
                return inner[scalar.column]
            case s.Constant():
                return scalar.value
            case s.Cast():
                return self.value(scalar.argument, inner)
            case s.ScalarCall():
                return self._call(scalar, inner)
            case s.And() | s.Or():
                return self._junction(scalar, inner)
            case s.Not():
                term = self.value(scalar.term, inner)
                return None if term is None else not term
            case s.IsNull():
                return self.value(scalar.argument, inner) is None
            case s.SameValue():
                return self.value(scalar.left, inner) == self.value(scalar.right, inner)
            case s.Case():
                for condition, value in scalar.branches:
                    if self.value(condition, inner):
                        return self.value(value, inner)
                return self.value(scalar.otherwise, inner)
            case s.Coalesce():
                values = (self.value(argument, inner) for argument in scalar.arguments)
                return next((value for value in values if value is not None), None)
        return self._subquery(scalar, inner)

    def _call(self, scalar: s.ScalarCall, inner: Environment) -> Any:
        values = [self.value(argument, inner) for argument in scalar.arguments]
        if any(value is None for value in values):
            return None
        try:
            return FUNCTIONS[scalar.function.name](*values)
        except ZeroDivisionError:
            raise RowFailure("division by zero") from None

    def _junction(self, scalar: s.And | s.Or, inner: Environment) -> bool | None:
        decisive = isinstance(scalar, s.Or)
        values: list[Any] = []
        failure: RowFailure | None = None
        for term in scalar.terms:
            try:
                values.append(self.value(term, inner))
            except RowFailure as failed:
                failure = failed
        if decisive in values:
            return decisive
        if failure is not None:
            raise failure
        return None if None in values else not decisive

    def _subquery(self, scalar: s.Scalar, inner: Environment) -> Any:
        match scalar:
            case s.SubqueryValue():
                rows = self.rows(scalar.query, inner)
                if len(rows) > 1:
                    raise RowFailure("more than one row returned by a subquery used as an expression")
                return rows[0][scalar.query.columns.index(scalar.column)] if rows else None
            case s.Exists():
                return bool(self.rows(scalar.query, inner))
            case s.AnyRow():
                truths = [self.value(scalar.condition, row) for row in self._environments(scalar.query, inner)]
                return True if True in truths else None if None in truths else False
        raise ValueError(f"the oracle does not know the scalar {type(scalar).__name__}")


def nulls_last(value: Any) -> tuple[bool, Any]:
    """Return a key that sorts null after all values."""
    return value is None, 0 if value is None else value


def sort_key(value: Any, key: s.SortKey) -> tuple[int, Any]:
    """Return a key that sorts as an ORDER BY key says."""
    if value is None:
        return (0 if key.nulls_first else 2), 0
    return 1, Descending(value) if key.descending else value


@dataclass(frozen=True)
class Descending:
    """A value that sorts in the opposite order."""

    value: Any

    def __lt__(self, other: Descending) -> bool:
        return bool(other.value < self.value)

"""Assert the invariants of bound relations, between rewrites. A violation is a bug of kpg, not an error of the user.

Every scalar refers to columns of its input, or, inside a subquery or the right side of a dependent join, to columns
around it. Types agree: arguments have the types of their parameters, conditions are boolean, and a column has the type
of its value. A column is defined by one node, and no node has a column twice.
"""

from __future__ import annotations

from collections.abc import Iterable

from kpg.columns.pause_points import pause
from kpg.sql.relational.relations import (
    Aggregate,
    BoundJoin,
    BoundRecursion,
    BoundRelation,
    Distinct,
    Filter,
    FunctionScan,
    Project,
    Query,
    RecursiveVariable,
    Scan,
    SetOperation,
    TopRows,
    Values,
    VariableScan,
)
from kpg.sql.relational.scalars import (
    And,
    AnyRow,
    Case,
    Coalesce,
    Column,
    ColumnValue,
    Exists,
    IsNull,
    Not,
    Or,
    SameValue,
    Scalar,
    ScalarCall,
    SortKey,
    SubqueryArray,
    SubqueryValue,
    parts,
)
from kpg.sql.sql_types import BOOLEAN, SqlType

Scope = frozenset[Column]


def verify_query(query: Query) -> None:
    """Assert that a whole query is consistent."""
    assert len(query.names) <= len(query.relation.columns), "a query has a column for each name"
    verifier = Verifier()
    verifier.relation(query.relation, frozenset())
    verifier.keys(query.order, frozenset(query.relation.columns))


def verify_relation(relation: BoundRelation, outer: Iterable[Column] = ()) -> None:
    """Assert that a relation is consistent, where columns around it may be referred to."""
    Verifier().relation(relation, frozenset(outer))


class Verifier:
    """One pass over a tree of relations. A node that is used several times is verified once for each set of columns."""

    def __init__(self) -> None:
        self.definer: dict[Column, BoundRelation] = {}
        self.variables: list[RecursiveVariable] = []
        self.done: set[tuple[int, Scope]] = set()

    def relation(self, relation: BoundRelation, outer: Scope) -> None:
        """Verify a node and all below it."""
        if (id(relation), outer) in self.done:
            return
        self.done.add((id(relation), outer))
        assert len(set(relation.columns)) == len(relation.columns), f"{name_of(relation)} has a column twice"
        check = getattr(self, f"check_{type(relation).__name__}")
        check(relation, outer)

    def defines(self, relation: BoundRelation, columns: Iterable[Column]) -> None:
        """Verify that columns are new in a node."""
        for column in columns:
            definer = self.definer.setdefault(column, relation)
            assert definer is relation, f"{column!r} is defined by {name_of(definer)} and {name_of(relation)}"

    # --- nodes

    def check_Scan(self, node: Scan, outer: Scope) -> None:
        """Verify a scan."""
        assert len(node.fields) == len(node.columns)
        self.defines(node, node.columns)

    def check_Values(self, node: Values, outer: Scope) -> None:
        """Verify rows of values."""
        self.defines(node, node.columns)
        for row in node.rows:
            self.values(node, row, outer)

    def check_FunctionScan(self, node: FunctionScan, outer: Scope) -> None:
        """Verify the call of a function of rows."""
        self.defines(node, node.columns)
        for argument in node.arguments:
            self.scalar(argument, outer)

    def check_VariableScan(self, node: VariableScan, outer: Scope) -> None:
        """Verify that a recursive variable is in scope, and its types."""
        assert any(node.variable is variable for variable in self.variables), f"{node.variable.name} is not in scope"
        self.defines(node, node.columns)
        self.same_types(node.columns, node.variable.columns)

    def check_Project(self, node: Project, outer: Scope) -> None:
        """Verify values; a column of the input that is kept has itself as its value."""
        self.relation(node.input, outer)
        self.values(node, node.values, frozenset(node.input.columns) | outer)
        kept = {value.column for value in node.values if isinstance(value, ColumnValue)} & set(node.input.columns)
        for column, value in zip(node.columns, node.values, strict=True):
            if column in kept:
                assert isinstance(value, ColumnValue) and value.column is column, (
                    f"{column!r} is kept with another value"
                )
        self.defines(node, (column for column in node.columns if column not in kept))

    def check_Filter(self, node: Filter, outer: Scope) -> None:
        """Verify a condition."""
        self.passes_through(node, node.input, outer)
        self.condition(node.condition, frozenset(node.columns) | outer)

    def check_Distinct(self, node: Distinct, outer: Scope) -> None:
        """Verify the input."""
        self.passes_through(node, node.input, outer)

    def check_TopRows(self, node: TopRows, outer: Scope) -> None:
        """Verify keys, order and limits, which do not depend on the row."""
        self.passes_through(node, node.input, outer)
        assert set(node.keys) <= set(node.columns), "a key is a column of the input"
        self.keys(node.order, frozenset(node.columns) | outer)
        for limit in (node.limit, node.offset):
            if limit is not None:
                self.scalar(limit, outer)

    def passes_through(self, node: BoundRelation, source: BoundRelation, outer: Scope) -> None:
        """Verify an input whose columns are the node's."""
        self.relation(source, outer)
        assert node.columns == source.columns, f"{name_of(node)} has the columns of its input"

    def check_BoundJoin(self, node: BoundJoin, outer: Scope) -> None:
        """Verify both sides: only a dependent right side refers to the left one."""
        self.relation(node.left, outer)
        left = frozenset(node.left.columns)
        self.relation(node.right, outer | left if node.dependent else outer)
        assert not left & set(node.right.columns), "both sides of a join have a column"
        both = node.left.columns + node.right.columns
        expected = {"semi": node.left.columns, "anti": node.left.columns}.get(node.kind, both)
        if node.kind == "mark":
            assert node.mark is not None and node.mark.type == BOOLEAN
            self.defines(node, [node.mark])
            expected = (*node.left.columns, node.mark)
        assert node.columns == expected, f"the columns of a join of kind {node.kind}"
        self.condition(node.condition, frozenset(both) | outer)

    def check_Aggregate(self, node: Aggregate, outer: Scope) -> None:
        """Verify keys, aggregates and grouping sets."""
        self.relation(node.input, outer)
        scope = frozenset(node.input.columns) | outer
        assert set(node.keys) <= set(node.input.columns), "a key of a group is a column of the input"
        results = [key.type for key in node.keys] + [call.type for call in node.aggregates]
        assert [column.type for column in node.columns[: len(results)]] == results, "the types of groups"
        assert len(node.columns) == len(results) + len(node.grouping)
        for call in node.aggregates:
            for argument in call.arguments:
                self.scalar(argument, scope)
            self.keys(call.order, scope)
            if call.filter is not None:
                self.condition(call.filter, scope)
        indices = {index for group in (*(node.sets or ()), *node.grouping) for index in group}
        assert indices <= set(range(len(node.keys))), "grouping sets are indices of keys"
        kept = set(node.keys) if node.sets is None else set()
        self.defines(node, (column for column in node.columns if column not in kept))

    def check_SetOperation(self, node: SetOperation, outer: Scope) -> None:
        """Verify that both sides have the types of the result."""
        for side in (node.left, node.right):
            self.relation(side, outer)
            self.same_types(node.columns, side.columns)
        self.defines(node, node.columns)

    def check_BoundRecursion(self, node: BoundRecursion, outer: Scope) -> None:
        """Verify definitions and body, which all see the variables."""
        before = len(self.variables)
        self.variables.extend(entry.variable for entry in node.definitions)
        for entry in node.definitions:
            assert (entry.base is None) == (entry.kind == "replace"), "union and sum have a base"
            for part in (entry.base, entry.step):
                if part is not None:
                    self.relation(part, outer)
                    self.same_types(entry.variable.columns, part.columns)
        self.passes_through(node, node.body, outer)
        del self.variables[before:]

    # --- scalars

    def values(self, node: BoundRelation, values: tuple[Scalar, ...], scope: Scope) -> None:
        """Verify one value for each column, of its type."""
        assert len(values) == len(node.columns), f"{name_of(node)} has a value for each column"
        for column, value in zip(node.columns, values, strict=True):
            self.scalar(value, scope)
            assert column.type == value.type, f"{column!r} is {column.type}, its value is {value.type}"

    def same_types(self, columns: tuple[Column, ...], others: tuple[Column, ...]) -> None:
        """Verify that columns have the same types."""
        assert [column.type for column in columns] == [column.type for column in others], f"{columns} and {others}"

    def keys(self, order: tuple[SortKey, ...], scope: Scope) -> None:
        """Verify the keys of an order."""
        for key in order:
            self.scalar(key.value, scope)

    def condition(self, scalar: Scalar, scope: Scope) -> None:
        """Verify a condition."""
        self.scalar(scalar, scope)
        self.boolean(scalar)

    def boolean(self, scalar: Scalar) -> None:
        """Verify that a scalar is boolean."""
        pause()
        assert scalar.type == BOOLEAN, f"a condition of type {scalar.type}"

    def scalar(self, scalar: Scalar, scope: Scope) -> None:
        """Verify a scalar and all within it."""
        pause()
        if isinstance(scalar, ColumnValue):
            assert scalar.column in scope, f"{scalar.column!r} is not available"
            assert scalar.type == scalar.column.type, f"the type of {scalar.column!r}"
        elif isinstance(scalar, (SubqueryValue, SubqueryArray, Exists, AnyRow)):
            self.subquery(scalar, scope)
            return
        elif isinstance(scalar, ScalarCall):
            self.call(scalar)
        elif isinstance(scalar, (And, Or, Not)):
            for term in parts(scalar):
                self.boolean(term)
        elif isinstance(scalar, Case):
            for condition, value in scalar.branches:
                self.boolean(condition)
                self.same_type(scalar, value.type)
            self.same_type(scalar, scalar.otherwise.type)
        elif isinstance(scalar, SameValue):
            assert scalar.left.type == scalar.right.type, f"{scalar.left.type} and {scalar.right.type} are compared"
        elif isinstance(scalar, Coalesce):
            for argument in scalar.arguments:
                self.same_type(scalar, argument.type)
        assert not isinstance(scalar, (And, Or, Not, IsNull, SameValue)) or scalar.type == BOOLEAN
        for part in parts(scalar):
            self.scalar(part, scope)

    def same_type(self, scalar: Scalar, other: SqlType) -> None:
        """Verify that a branch has the type of the whole."""
        assert scalar.type == other, f"{type(scalar).__name__} of type {scalar.type} has a branch of type {other}"

    def call(self, call: ScalarCall) -> None:
        """Verify the number of arguments, and that none is of unknown type."""
        count, parameters = len(call.arguments), len(call.function.parameters)
        enough = count >= parameters if call.function.variadic else count == parameters
        assert enough, f"{call.function.name} has {count} arguments"
        for argument in call.arguments:
            assert argument.type.name != "unknown", f"an argument of {call.function.name} has no type"

    def subquery(self, scalar: SubqueryValue | SubqueryArray | Exists | AnyRow, scope: Scope) -> None:
        """Verify a subquery, which sees the columns around it."""
        self.relation(scalar.query, scope)
        if isinstance(scalar, (SubqueryValue, SubqueryArray)):
            assert scalar.column in scalar.query.columns, "the column of a subquery"
            expected = scalar.type.element if isinstance(scalar, SubqueryArray) else scalar.type
            assert expected == scalar.column.type, "the type of a subquery"
            if isinstance(scalar, SubqueryArray):
                self.keys(scalar.order, frozenset(scalar.query.columns) | scope)
        else:
            assert scalar.type == BOOLEAN
        if isinstance(scalar, AnyRow):
            self.condition(scalar.condition, scope | frozenset(scalar.query.columns))


def name_of(relation: BoundRelation) -> str:
    """Return the class of a node, with its columns."""
    return f"{type(relation).__name__}({', '.join(map(repr, relation.columns))})"

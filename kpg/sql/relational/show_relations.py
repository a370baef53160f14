"""Bound relations as text, for tests, messages and EXPLAIN: one node a line, inputs indented below it.

    Project x=a + 1
      Filter a > 2
        Scan r(a, b)

Columns that share a name get a number: `a`, `a'2`. A node that is used several times is shown once, as `#1`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date, time
from decimal import Decimal
from typing import Any

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
    Scan,
    SetOperation,
    TopRows,
    Values,
    VariableScan,
    inputs,
)
from kpg.sql.relational.scalars import (
    AggregateCall,
    And,
    AnyRow,
    Case,
    Cast,
    Coalesce,
    Column,
    ColumnValue,
    Constant,
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
)


def literal(value: Any) -> str:
    """Return a value as SQL writes it."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case Decimal():
            return str(value)
        case str():
            return "'{}'".format(value.replace("'", "''"))
        case bytes():
            return f"'\\x{value.hex()}'"
        case date() | time():  # a datetime is a date
            return f"'{value}'"
        case tuple() | list():
            return f"ARRAY[{', '.join(map(literal, value))}]"
    return repr(value)


def show_query(query: Query) -> str:
    """Return a query as text: its names and order, then its relation."""
    printer = RelationPrinter(query.relation)
    order = f" ordered by {printer.keys(query.order)}" if query.order else ""
    return f"Query({', '.join(query.names)}){order}\n{printer.relation(query.relation, 1)}"


def show_relation(relation: BoundRelation) -> str:
    """Return a relation as text."""
    return RelationPrinter(relation).relation(relation, 0)


def show_scalar(scalar: Scalar) -> str:
    """Return a scalar as text."""
    return RelationPrinter(None).scalar(scalar)


class RelationPrinter:
    """Names for the columns of one tree, and its text."""

    def __init__(self, root: BoundRelation | None) -> None:
        self.names: dict[Column, str] = {}
        self.taken: Counter[str] = Counter()
        self.shared = shared_nodes(root) if root is not None else set()
        self.numbers: dict[int, int] = {}

    def column(self, column: Column) -> str:
        """Return the name of a column, with a number if another has the same name."""
        if column not in self.names:
            self.taken[column.name] += 1
            number = self.taken[column.name]
            self.names[column] = column.name if number == 1 else f"{column.name}'{number}"
        return self.names[column]

    def columns(self, columns: Sequence[Column]) -> str:
        """Return names, separated by commas."""
        return ", ".join(map(self.column, columns))

    # --- nodes

    def relation(self, relation: BoundRelation, depth: int) -> str:
        """Return a node and its inputs, indented."""
        indent = "  " * depth
        label = ""
        if id(relation) in self.shared:
            seen = id(relation) in self.numbers
            number = self.numbers.setdefault(id(relation), len(self.numbers) + 1)
            if seen:
                return f"{indent}#{number}"
            label = f"#{number} "
        below = [self.relation(source, depth + 1) for source in inputs(relation)]
        show: Callable[[BoundRelation], str] = getattr(self, f"show_{type(relation).__name__}")
        return "\n".join([f"{indent}{label}{show(relation)}", *below])

    def show_Scan(self, node: Scan) -> str:
        """Return a scan with its columns."""
        return f"Scan {node.source}({self.columns(node.columns)})"

    def show_Values(self, node: Values) -> str:
        """Return rows."""
        rows = ", ".join(f"({', '.join(map(self.scalar, row))})" for row in node.rows)
        return f"Values({self.columns(node.columns)}) {rows}"

    def show_FunctionScan(self, node: FunctionScan) -> str:
        """Return the call of a function of rows."""
        arguments = ", ".join(map(self.scalar, node.arguments))
        return f"FunctionScan {node.function.name}({arguments}) as ({self.columns(node.columns)})"

    def show_VariableScan(self, node: VariableScan) -> str:
        """Return a recursive variable."""
        return f"VariableScan {node.variable.name}({self.columns(node.columns)})"

    def show_Project(self, node: Project) -> str:
        """Return columns with their values."""
        shown = []
        for column, value in zip(node.columns, node.values, strict=True):
            text = self.scalar(value)
            name = self.column(column)
            shown.append(name if text == name else f"{name}={text}")
        return f"Project {', '.join(shown)}"

    def show_Filter(self, node: Filter) -> str:
        """Return a condition."""
        return f"Filter {self.scalar(node.condition)}"

    def show_BoundJoin(self, node: BoundJoin) -> str:
        """Return the kind of a join and its condition."""
        dependent = "dependent " if node.dependent else ""
        mark = f" as {self.column(node.mark)}" if node.mark is not None else ""
        return f"Join {dependent}{node.kind}{mark} on {self.scalar(node.condition)}"

    def show_Aggregate(self, node: Aggregate) -> str:
        """Return keys and aggregates."""
        count = len(node.keys)
        keys = [named(self.column(new), self.column(old)) for new, old in zip(node.columns, node.keys, strict=False)]
        results = node.columns[count : count + len(node.aggregates)]
        calls = [f"{self.column(c)}={self.aggregate(a)}" for c, a in zip(results, node.aggregates, strict=True)]
        last = node.columns[count + len(node.aggregates) :]
        grouping = [f"{self.column(c)}=grouping{group}" for c, group in zip(last, node.grouping, strict=True)]
        sets = "" if node.sets is None else f" sets {', '.join(map(str, node.sets))}"
        return f"Aggregate by ({', '.join(keys)}){sets} {', '.join(calls + grouping)}".rstrip()

    def show_Distinct(self, node: Distinct) -> str:
        """Return the name of the node."""
        return "Distinct"

    def show_TopRows(self, node: TopRows) -> str:
        """Return the order and the limits."""
        by = f" by ({self.columns(node.keys)})" if node.keys else ""
        order = f" order {self.keys(node.order)}" if node.order else ""
        limit = f" limit {self.scalar(node.limit)}" if node.limit is not None else ""
        offset = f" offset {self.scalar(node.offset)}" if node.offset is not None else ""
        return f"TopRows{by}{order}{limit}{offset}{' with ties' if node.ties else ''}"

    def show_SetOperation(self, node: SetOperation) -> str:
        """Return the kind of a set operation."""
        return f"{node.kind.capitalize()}{' all' if node.all else ''} as ({self.columns(node.columns)})"

    def show_BoundRecursion(self, node: BoundRecursion) -> str:
        """Return the variables and the limit."""
        variables = [f"{entry.variable.name} {entry.kind}" for entry in node.definitions]
        limit = "" if node.limit is None else f" {'error' if node.error_at_limit else 'return'} at {node.limit}"
        return f"Recursion {', '.join(variables)}{limit}"

    # --- scalars

    def keys(self, order: Sequence[SortKey]) -> str:
        """Return the keys of an order."""
        return ", ".join(self.key(key) for key in order)

    def key(self, key: SortKey) -> str:
        """Return one key; the place of nulls only if it is not the usual one."""
        nulls = "" if key.nulls_first == key.descending else f" nulls {'first' if key.nulls_first else 'last'}"
        return f"{self.scalar(key.value)}{' desc' if key.descending else ''}{nulls}"

    def aggregate(self, call: AggregateCall) -> str:
        """Return the call of an aggregate."""
        arguments = ", ".join(map(self.scalar, call.arguments)) or "*"
        order = f" order by {self.keys(call.order)}" if call.order else ""
        chosen = f" filter {self.scalar(call.filter)}" if call.filter is not None else ""
        return f"{call.function.name}({'distinct ' if call.distinct else ''}{arguments}{order}){chosen}"

    def scalar(self, scalar: Scalar) -> str:
        """Return a scalar as text, with parentheses around operators inside others."""
        match scalar:
            case ColumnValue():
                return self.column(scalar.column)
            case Constant():
                return literal(scalar.value)
            case ScalarCall():
                return self.call(scalar)
            case Cast():
                return f"{self.part(scalar.argument)}::{scalar.type}"
            case And():
                return " and ".join(map(self.part, scalar.terms))
            case Or():
                return " or ".join(map(self.part, scalar.terms))
            case Not():
                return f"not {self.part(scalar.term)}"
            case IsNull():
                return f"{self.part(scalar.argument)} is null"
            case SameValue():
                return f"{self.part(scalar.left)} is not distinct from {self.part(scalar.right)}"
            case Case():
                branches = [f"when {self.scalar(test)} then {self.scalar(value)}" for test, value in scalar.branches]
                return f"case {' '.join(branches)} else {self.scalar(scalar.otherwise)} end"
            case Coalesce():
                return f"coalesce({', '.join(map(self.scalar, scalar.arguments))})"
            case SubqueryValue():
                return f"value of {self.column(scalar.column)} in {self.inner(scalar.query)}"
            case SubqueryArray():
                order = f" ordered by {self.keys(scalar.order)}" if scalar.order else ""
                return f"array of {self.column(scalar.column)}{order} in {self.inner(scalar.query)}"
            case Exists():
                return f"exists {self.inner(scalar.query)}"
            case AnyRow():
                query = self.inner(scalar.query)
                return f"any ({self.scalar(scalar.condition)}) in {query}"
        raise AssertionError(f"no text for {type(scalar).__name__}")

    def call(self, call: ScalarCall) -> str:
        """Return the call of a function, or operands with their operator."""
        name = call.function.name
        if not name[0].isalpha() and len(call.arguments) == 2:
            return f"{self.part(call.arguments[0])} {name} {self.part(call.arguments[1])}"
        if not name[0].isalpha() and len(call.arguments) == 1:
            return f"{name}{self.part(call.arguments[0])}"
        return f"{name}({', '.join(map(self.scalar, call.arguments))})"

    def part(self, scalar: Scalar) -> str:
        """Return an operand, in parentheses if it has operands itself."""
        text = self.scalar(scalar)
        simple = isinstance(scalar, (ColumnValue, Constant, Coalesce, Case, Cast))
        is_function = isinstance(scalar, ScalarCall) and scalar.function.name[0].isalpha()
        return text if simple or is_function else f"({text})"

    def inner(self, relation: BoundRelation) -> str:
        """Return a subquery on one line."""
        lines = self.relation(relation, 0).splitlines()
        text = ""
        depth = 0
        for line in lines:
            level = (len(line) - len(line.lstrip())) // 2
            separator = "(" if level > depth else "; " if level == depth and text else ")" * (depth - level) + "; "
            text += f"{separator if text else ''}{line.strip()}"
            depth = level
        return f"[{text}{')' * depth}]"


def named(name: str, value: str) -> str:
    """Return `name=value`, or the name if both are the same."""
    return name if name == value else f"{name}={value}"


def shared_nodes(root: BoundRelation) -> set[int]:
    """Return the identities of the nodes that several nodes use."""
    uses: Counter[int] = Counter()
    stack = [root]
    while stack:
        node = stack.pop()
        for source in inputs(node):
            uses[id(source)] += 1
            if uses[id(source)] == 1:
                stack.append(source)
    return {identity for identity, count in uses.items() if count > 1}

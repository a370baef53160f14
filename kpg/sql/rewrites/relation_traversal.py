"""Walk and rebuild relations: the scalars of a node, its inputs, and the outer columns that a relation refers to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from kpg.sql.relational.relations import (
    Aggregate,
    BoundJoin,
    BoundRecursion,
    BoundRelation,
    Definition,
    Filter,
    FunctionScan,
    Project,
    SetOperation,
    TopRows,
    Values,
    inputs,
)
from kpg.sql.relational.scalars import (
    SUBQUERIES,
    AggregateCall,
    Column,
    ColumnValue,
    Scalar,
    SortKey,
    map_parts,
    walk,
)

ScalarRewrite: TypeAlias = Callable[[Scalar], Scalar]


def scalars_of(node: BoundRelation) -> Iterator[Scalar]:
    """Yield the scalars of a node, not those of its inputs."""
    match node:
        case Values():
            for row in node.rows:
                yield from row
        case FunctionScan():
            yield from node.arguments
        case Project():
            yield from node.values
        case Filter() | BoundJoin():
            yield node.condition
        case Aggregate():
            for call in node.aggregates:
                yield from call.arguments
                yield from (key.value for key in call.order)
                yield from () if call.filter is None else (call.filter,)
        case TopRows():
            yield from (key.value for key in node.order)
            yield from (scalar for scalar in (node.limit, node.offset) if scalar is not None)


def map_scalars(node: BoundRelation, function: ScalarRewrite) -> BoundRelation:
    """Return the node with a function applied to its scalars; the node itself if none changes."""
    old = tuple(scalars_of(node))
    if all(function(scalar) is scalar for scalar in old):
        return node
    match node:
        case Values():
            return replace(node, rows=tuple(tuple(map(function, row)) for row in node.rows))
        case FunctionScan():
            return replace(node, arguments=tuple(map(function, node.arguments)))
        case Project():
            return replace(node, values=tuple(map(function, node.values)))
        case Filter() | BoundJoin():
            return replace(node, condition=function(node.condition))
        case Aggregate():
            return replace(node, aggregates=tuple(map_call(call, function) for call in node.aggregates))
        case TopRows():
            return replace(node, order=map_order(node.order, function))
    raise AssertionError(type(node).__name__)


def map_call(call: AggregateCall, function: ScalarRewrite) -> AggregateCall:
    """Return an aggregate with a function applied to its scalars."""
    arguments = tuple(map(function, call.arguments))
    kept = None if call.filter is None else function(call.filter)
    return replace(call, arguments=arguments, filter=kept, order=map_order(call.order, function))


def map_order(order: tuple[SortKey, ...], function: ScalarRewrite) -> tuple[SortKey, ...]:
    """Return the keys of an order with a function applied to their values."""
    return tuple(replace(key, value=function(key.value)) for key in order)


def with_inputs(node: BoundRelation, new: tuple[BoundRelation, ...]) -> BoundRelation:
    """Return the node with other inputs, in the order of `inputs`; the node itself if they are the same.

    Nodes that pass the columns of an input on get those of the new input.
    """
    if all(a is b for a, b in zip(inputs(node), new, strict=True)):
        return node
    match node:
        case BoundJoin():
            columns = new[0].columns
            columns += () if node.kind in ("semi", "anti", "mark") else new[1].columns
            columns += () if node.mark is None else (node.mark,)
            return replace(node, columns=columns, left=new[0], right=new[1])
        case SetOperation():
            return replace(node, left=new[0], right=new[1])
        case BoundRecursion():
            return with_definitions(node, list(new))
        case Project() | Aggregate():
            return replace(node, input=new[0])
    return replace(node, columns=new[0].columns, input=new[0])  # type: ignore[call-arg]


def with_definitions(node: BoundRecursion, new: list[BoundRelation]) -> BoundRecursion:
    """Return a recursion with other definitions and another body."""
    parts = iter(new)
    definitions: list[Definition] = []
    for entry in node.definitions:
        base = None if entry.base is None else next(parts)
        definitions.append(replace(entry, base=base, step=next(parts)))
    body = next(parts)
    return replace(node, columns=body.columns, definitions=tuple(definitions), body=body)


def map_relations(root: BoundRelation, function: Callable[[BoundRelation], BoundRelation]) -> BoundRelation:
    """Return a relation with a function applied to each node, inputs first; a shared node is mapped once."""
    done: dict[BoundRelation, BoundRelation] = {}

    def visit(node: BoundRelation) -> BoundRelation:
        if node not in done:
            done[node] = function(with_inputs(node, tuple(map(visit, inputs(node)))))
        return done[node]

    return visit(root)


def nodes_of(root: BoundRelation) -> Iterator[BoundRelation]:
    """Yield a relation and all relations below it, each once, inputs last; those of subqueries as well."""
    seen: set[BoundRelation] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            yield node
            stack.extend(inputs(node))
            stack.extend(query for scalar in scalars_of(node) for query in subqueries_of(scalar))


def subqueries_of(scalar: Scalar) -> Iterator[BoundRelation]:
    """Yield the relations of the subqueries in a scalar."""
    for part in walk(scalar):
        if isinstance(part, SUBQUERIES):
            yield part.query


def has_subquery(scalar: Scalar) -> bool:
    """Return whether a scalar contains a subquery."""
    return any(isinstance(part, SUBQUERIES) for part in walk(scalar))


def free_columns(root: BoundRelation) -> frozenset[Column]:
    """Return the columns around a relation that it refers to."""
    read: set[Column] = set()
    defined: set[Column] = set()
    for node in nodes_of(root):
        defined.update(node.columns)
        for scalar in scalars_of(node):
            read.update(part.column for part in walk(scalar) if isinstance(part, ColumnValue))
    return frozenset(read - defined)


def substitute(scalar: Scalar, values: Mapping[Column, Scalar]) -> Scalar:
    """Return a scalar with some columns replaced by other values."""
    if isinstance(scalar, ColumnValue):
        return values.get(scalar.column, scalar)
    return map_parts(scalar, lambda part: substitute(part, values))

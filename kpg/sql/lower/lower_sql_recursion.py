"""Lower recursions to the recursion operator of the engine, where they are linear rules, and else to its loops.

    union     x starts as the base; in every round it becomes the distinct rows of base and step
    sum       a working table starts as the base and becomes the step of itself; all its rounds are added up
    replace   x starts empty; in every round it becomes its step (WITH MUTUALLY RECURSIVE)

    union, as a linear rule: see kpg/sql/lower/recursive_rule.py

A column of a variable with a base may be null only if it may be null in the base or in the step. The step is lowered as
if the columns of the variable had the nulls of the base. Where that turns out wrong, it is lowered again with more
columns that may be null.

A round sees the variables as the round before left them. A limit counts the rounds that change a variable. Beyond it,
the query fails, or, if it asks for the result at the limit, the last round is the answer. A recursion that is not a set
has a limit by default, because it need not end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kpg.api.collection import Collection
from kpg.api.recursion import Recursion, Variable
from kpg.columns.schema import Schema
from kpg.plan import nodes
from kpg.sql.lower.aligned_columns import as_wide, type_of
from kpg.sql.lower.engine_types import engine_type
from kpg.sql.lower.lowered_relation import LoweredRelation, unique_names
from kpg.sql.lower.recursive_rule import FOLLOWS_FEW, SEVERAL_CLOCKS, LinearRule, rule_of
from kpg.sql.lower.relation_lowering import RelationLowering
from kpg.sql.relational.relations import (
    BoundRecursion,
    BoundRelation,
    Definition,
    RecursiveVariable,
    VariableScan,
)
from kpg.sql.relational.scalars import Column

LOOP_ASKED_FOR: Final = "a loop is asked for"
MAX_ROUNDS_WITHOUT_SET: Final = 10_000  # of UNION ALL and MUTUALLY RECURSIVE without a limit: they may never end


def lower_variable_scan(lowering: RelationLowering, node: VariableScan) -> LoweredRelation:
    """Return the current rows of a variable."""
    rows = lowering.variables[node.variable]
    return LoweredRelation(rows, dict(zip(node.columns, rows.schema.names, strict=True)))


def lower_recursion(lowering: RelationLowering, node: BoundRecursion) -> LoweredRelation:
    """Return the body of a recursion, over its variables at their fixed point."""
    linear = rule_of(lowering.db, node, lowering.estimates) if lowering.recursion == "auto" else LOOP_ASKED_FOR
    if isinstance(linear, LinearRule):
        (entry,) = node.definitions
        lowering.variables[entry.variable] = _saturated(lowering, entry, linear)
        return lowering.lower(node.body)
    schemas = {entry.variable: _first_schema(lowering, entry) for entry in node.definitions}
    forget_steps = lowering.checkpoint()
    loop = _enter_loop(lowering, node, linear, schemas)
    while (wider := _with_nulls_of_steps(lowering, node, schemas)) != schemas:
        forget_steps()
        schemas = wider
        loop = _enter_loop(lowering, node, linear, schemas)
    for variable, result in [(entry.variable, _define(lowering, entry, loop)) for entry in node.definitions]:
        lowering.variables[variable] = loop.leave(result)
    return lowering.lower(node.body)


def _enter_loop(
    lowering: RelationLowering, node: BoundRecursion, why_loop: str, schemas: dict[RecursiveVariable, Schema]
) -> Recursion:
    """Return a new loop for a recursion, which is no linear rule, and make its variables those that relations read."""
    names = ", ".join(entry.variable.name for entry in node.definitions)
    starts_with_base = any(entry.kind != "replace" for entry in node.definitions)
    loop = lowering.db.loop(loop_name(names))
    loop.loop.as_written = _why_as_written(node, why_loop)
    loop.loop.declarative = all(entry.kind == "union" for entry in node.definitions)
    limit = None if node.limit is None else node.limit - starts_with_base  # the base is the first round
    if limit is not None and limit <= loop.loop.max_rounds:  # that of the db holds for a larger one
        loop.loop.max_rounds = limit
        loop.loop.stops = not node.error_at_limit
    elif limit is None and not loop.loop.declarative and loop.loop.max_rounds == lowering.db.config.max_rounds:
        loop.loop.max_rounds = min(loop.loop.max_rounds, MAX_ROUNDS_WITHOUT_SET)
    for entry in node.definitions:
        schema = schemas[entry.variable]
        source = schema if entry.base is None else _rows(lowering, entry.base, schema)
        lowering.variables[entry.variable] = loop.variable(source)
    return loop


def _first_schema(lowering: RelationLowering, entry: Definition) -> Schema:
    """Return the columns of a variable as the base has them; without a base, each may be null."""
    schema = _schema(entry.variable)
    if entry.base is None:
        return schema
    return _with_nulls(schema, lowering.lower(entry.base), entry.base.columns, [False] * len(schema))


def _with_nulls_of_steps(
    lowering: RelationLowering, node: BoundRecursion, schemas: dict[RecursiveVariable, Schema]
) -> dict[RecursiveVariable, Schema]:
    """Return the columns of variables, of which those may be null that may be in a step."""
    wider: dict[RecursiveVariable, Schema] = {}
    for entry in node.definitions:
        schema = schemas[entry.variable]
        known = [type_.nullable for type_ in schema.types]
        wider[entry.variable] = _with_nulls(schema, lowering.lower(entry.step), entry.step.columns, known)
    return wider


def _with_nulls(schema: Schema, rows: LoweredRelation, columns: Sequence[Column], known: Sequence[bool]) -> Schema:
    """Return a schema in which those columns may be null that are known to, and those that may be null in some rows."""
    types = [
        type_.optional(nullable or type_of(rows, column).nullable)
        for type_, column, nullable in zip(schema.types, columns, known, strict=True)
    ]
    return Schema(schema.names, tuple(types))


def _saturated(lowering: RelationLowering, entry: Definition, linear: LinearRule) -> Collection:
    """Return the rows of a recursion that one operator maintains. Its inputs have each row once."""
    assert entry.base is not None
    schema = _schema(entry.variable)
    inputs = [_rows(lowering, entry.base, schema).distinct()]
    for read in linear.reads:
        lowered = lowering.lower(read.relation)
        for column in read.joined:  # null equals nothing
            if lowered.rows.schema.type_of(lowered.names[column]).nullable:
                lowered = lowered.with_rows(lowered.rows.filter(~lowered.reference(column).is_null()))
        inputs.append(as_wide(lowered, read.columns, _columns_schema(read.columns)).distinct())
    system = linear.system(entry.variable.name, len(schema), lowering.db.max_rounds)
    saturation = nodes.SaturationSpec(system, tuple(rows.node for rows in inputs), (entry.variable.name,))
    return Collection(lowering.db, nodes.SaturatedNode(schema, frozenset(), saturation, 0))


def loop_name(names: str) -> str:
    """Return the name of the loop of a recursion."""
    return f"the recursion of {names}"


def _why_as_written(node: BoundRecursion, reason: str) -> str | None:
    """Return why a recursion must stay a loop; None if an operator may replace it that derives the same sets.

    `reason` says why it is not one linear rule.
    """
    if node.limit is not None:
        return "it has a limit of rounds"
    if any(entry.kind != "union" for entry in node.definitions):
        return "it is not a recursion by UNION"
    return reason if reason in (LOOP_ASKED_FOR, SEVERAL_CLOCKS) or reason.startswith(FOLLOWS_FEW) else None


def _define(lowering: RelationLowering, entry: Definition, loop: Recursion) -> Variable:
    """Define a variable, and return the one that holds the result."""
    variable = lowering.variables[entry.variable]
    assert isinstance(variable, Variable) and isinstance(variable.node, nodes.VariableNode)
    step = _rows(lowering, entry.step, variable.schema)
    if entry.kind == "replace":
        variable.set(step)
        return variable
    assert variable.node.source is not None
    base = Collection(lowering.db, variable.node.source)
    if entry.kind == "union":
        variable.set(base.concat(step).distinct())
        return variable
    total = loop.variable(base)
    total.set(total.concat(step))
    variable.set(step)
    return total


def _schema(variable: RecursiveVariable) -> Schema:
    """Return the columns of a variable; each may be null."""
    return _columns_schema(variable.columns)


def _columns_schema(columns: tuple[Column, ...]) -> Schema:
    """Return columns that may be null."""
    names = unique_names(columns)
    return Schema.of({names[column]: engine_type(column.type) for column in columns})


def _rows(lowering: RelationLowering, part: BoundRelation, schema: Schema) -> Collection:
    """Return the rows of a base or step in the columns of its variable."""
    return as_wide(lowering.lower(part), part.columns, schema)

"""Lower the relations whose rows depend on history: choice domains, and numbered rows (autoinc)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpg.columns.functions import col
from kpg.columns.schema import Schema
from kpg.plan import nodes
from kpg.query.ir.program import AggregateReduction, Relation
from kpg.query.lower.value_expressions import cast

if TYPE_CHECKING:
    from kpg.api.collection import Collection


def choose_rows_of(rows: Collection, relation: Relation) -> Collection:
    """Return some rows of a set: at most one for each value of each choice domain of the relation."""
    from kpg.api.collection import Collection

    domains = tuple(tuple(relation.columns[column].name for column in domain) for domain in relation.domains)
    return Collection(rows.db, nodes.ChosenRowsNode(rows.schema, rows.node.loops, rows.node, domains))


def number_rows_of(rows: Collection, relation: Relation, reduction: AggregateReduction) -> Collection:
    """Return the rows of a set, each with a number in the last column of the relation."""
    from kpg.api.collection import Collection

    column = relation.columns[-1]
    schema = rows.schema.concat(Schema.of({column.name: int}))
    node = nodes.NumberedRowsNode(schema, rows.node.loops, rows.node, reduction.value or 0, max(reduction.limit, 1))
    keys = rows.schema.names if reduction.keys else ()
    value = cast(col(column.name), "number", column.kind, rows.db.is_single_worker)
    return Collection(rows.db, node).select(*keys, **{column.name: value})

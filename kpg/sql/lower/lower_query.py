"""Lower a whole query to a collection: its columns are those of the result, in order, named as the query names them.

    lower_query(db, query, sources)      sources has the collection of each table and installed view that it reads

Lowering describes a plan and installs nothing. Result columns with equal names get numbers, since the columns of a
collection have different names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from kpg.api.collection import Collection
from kpg.columns.expression import Expression
from kpg.plan.nodes import StreamNode
from kpg.sql.lower.equal_plans import share_equal_plans
from kpg.sql.lower.lower_aggregates import lower_aggregate
from kpg.sql.lower.lower_function_scans import lower_function_scan
from kpg.sql.lower.lower_joins import lower_join
from kpg.sql.lower.lower_rows import lower_filter, lower_project, lower_scan, lower_values
from kpg.sql.lower.lower_set_operations import lower_distinct, lower_set_operation
from kpg.sql.lower.lower_sql_recursion import lower_recursion, lower_variable_scan
from kpg.sql.lower.lower_top_rows import lower_top_rows
from kpg.sql.lower.relation_lowering import LowerNode, RelationLowering
from kpg.sql.lower.shared_arrangements import share_arrangements
from kpg.sql.relational.references import count_scans
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
    without_order,
)
from kpg.sql.rewrites.functional_dependence import KeyOfTable
from kpg.sql.rewrites.prune_columns import columns_read
from kpg.sql.rewrites.push_filters import parents_of
from kpg.sql.rewrites.rewritten_queries import rewritten
from kpg.sql.rewrites.source_facts import QueryFacts, SourceFacts

if TYPE_CHECKING:
    from kpg.api.contracts import Database
    from kpg.sql.lower.join_choice import JoinChoice

LOWERINGS: Final[dict[type[BoundRelation], Any]] = {
    Scan: lower_scan,
    Values: lower_values,
    Project: lower_project,
    Filter: lower_filter,
    BoundJoin: lower_join,
    Aggregate: lower_aggregate,
    Distinct: lower_distinct,
    TopRows: lower_top_rows,
    SetOperation: lower_set_operation,
    FunctionScan: lower_function_scan,
    VariableScan: lower_variable_scan,
    BoundRecursion: lower_recursion,
}


def lower_query(
    db: Database,
    query: Query,
    sources: Mapping[str, Collection],
    *,
    recursion: str = "auto",
    choices: list[JoinChoice] | None = None,
) -> Collection:
    """Return the collection of a query. It has no order, and no columns that serve an order only.

    `choices` receives the choices of join plans.
    """
    if db.admission is not None:
        db.admission.check_relations(count_scans(query.relation))
    table: Mapping[type[BoundRelation], LowerNode] = LOWERINGS
    facts = facts_of(sources)
    query = rewritten(without_order(query), facts)
    relation = query.relation
    facts.learn_recursions(relation)
    lowering = RelationLowering(
        db, sources, table, facts, parents_of(relation), columns_read(relation), recursion=recursion
    )
    lowered = lowering.lower(relation)
    if choices is not None:
        choices += lowering.joins
    values: dict[str, Expression] = {}
    for name, column in zip(free_names(query.names), query.relation.columns, strict=True):
        values[name] = lowered.reference(column)
    rows = lowered.rows.select(**values)
    return Collection(db, share_arrangements(share_equal_plans(rows.node)))


def facts_of(sources: Mapping[str, Collection]) -> QueryFacts:
    """Return what the sources say about their rows; `sources.key_of(name)`, if there is one, has primary keys."""
    return QueryFacts(FactsOfSources(sources))


class FactsOfSources(Mapping[str, SourceFacts]):
    """Facts by the names of sources, computed when they are asked for: a query reads few of them."""

    def __init__(self, sources: Mapping[str, Collection]) -> None:
        self._sources = sources
        self._key_of: KeyOfTable = getattr(sources, "key_of", lambda name: ())

    def __getitem__(self, name: str) -> SourceFacts:
        return _facts(self._sources[name], self._key_of(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)


def _facts(source: Collection, key: tuple[str, ...]) -> SourceFacts:
    columns = zip(source.schema.names, source.schema.types, strict=True)
    not_null = frozenset(name for name, type_ in columns if not type_.nullable)
    own = getattr(source, "key", None) or ()
    kept = not isinstance(source.node, StreamNode)
    promised = key or (() if kept else own)
    likely = promised or own or source.schema.names[:1]
    return SourceFacts(not_null, promised, getattr(source, "size", 0), kept, likely)


def free_names(names: Iterable[str]) -> list[str]:
    """Return different names for the columns of a result: the given ones, numbered where an earlier column has it."""
    taken: dict[str, None] = {}
    numbers: dict[str, int] = {}  # the last one of each name
    for name in names:
        number, free = numbers.get(name, 1), name or "column"
        while free in taken:
            number += 1
            free = f"{name}_{number}"
        taken[free], numbers[name] = None, number
    return list(taken)

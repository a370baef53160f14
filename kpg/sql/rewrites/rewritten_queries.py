"""Rewritten queries that are kept: a query that is planned again is not rewritten again.

    rewritten(query, facts)   ==   rewrite_query(query, facts)

The relation of a query is immutable and identifies it. The result is used again while the facts that the rewrites asked
for are the same; numbers of rows, which only guide the rewrites, may change by less than a factor of two.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from kpg.sql.relational.relations import BoundRelation, Query
from kpg.sql.rewrites.rewrite_query import rewrite_query
from kpg.sql.rewrites.source_facts import QueryFacts, SourceFacts

MAX_KEPT_QUERIES: Final = 128  # of all dbs of the process

KnownFacts: TypeAlias = tuple[frozenset[str], tuple[str, ...], int, bool]


@dataclass(frozen=True, slots=True)
class KeptRewrite:
    """A relation, the facts that its rewrites asked for, and the result."""

    relation: BoundRelation  # keeps the identity of the relation from being used again
    facts: Mapping[str, KnownFacts]
    result: BoundRelation


_kept: OrderedDict[int, KeptRewrite] = OrderedDict()


def rewritten(query: Query, facts: QueryFacts) -> Query:
    """Return a query after all rewrites; the rewrites of an earlier call if they still hold."""
    key = id(query.relation)
    kept = _kept.get(key)
    if kept is not None and all(known(facts.of(name)) == fact for name, fact in kept.facts.items()):
        return Query(kept.result, query.names, query.order)
    result = rewrite_query(query, facts)
    asked = {name: known(fact) for name, fact in facts.found.items()}
    _kept[key] = KeptRewrite(query.relation, asked, result.relation)
    _kept.move_to_end(key)
    if len(_kept) > MAX_KEPT_QUERIES:
        _kept.popitem(last=False)
    return result


def known(facts: SourceFacts) -> KnownFacts:
    """Return what rewrites may rely on, with the number of binary digits in place of the number of rows."""
    return facts.not_null, facts.key, facts.rows.bit_length(), facts.kept

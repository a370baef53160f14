"""The order of micro-batches: whether a batch of a stream is new, repeated, or out of order.

    origin_of(relation, query)   the name under which the db records the batches of a query that writes a relation
    is_repeated(...)             the db has the batch already: committing it again changes nothing
    check_order(...)             refuses a batch after a gap, and a second stream into one relation

Batches of a stream arrive in order, each once: a batch at or before the last is a repetition, one beyond the next means
that some are missing. The db keeps the last batch of each origin together with its rows, on disk if it has one.
"""

from __future__ import annotations

from collections.abc import Mapping

from kpg.errors import InputError, InUse

PREFIX = "spark stream into "


def origin_prefix(relation: str) -> str:
    """Return the prefix of the origins of all streams into a relation."""
    return f"{PREFIX}{relation}: "


def origin_of(relation: str, query: str) -> str:
    """Return the origin of a stream into a relation."""
    return origin_prefix(relation) + query


def is_repeated(last: Mapping[str, int], relation: str, query: str, batch: int) -> bool:
    """Return whether the db has a batch; `last` holds the last batch of each stream into the relation."""
    return batch <= last.get(origin_of(relation, query), -1)


def check_order(
    last: Mapping[str, int], relation: str, query: str, batch: int, *, shared: bool = False, late: bool = False
) -> None:
    """Refuse a batch after a gap, and a second stream into one relation."""
    origin = origin_of(relation, query)
    expected = last.get(origin, -1) + 1
    if batch > expected and not late:
        present = f"batches up to {expected - 1}" if expected else "none"
        raise InputError(
            f"stream {query} comes with batch {batch}, this db has {present}",
            detail=f"Batches {expected} to {batch - 1} went elsewhere; their rows are not in {relation}.",
            hint='Start the stream with a new checkpoint, or accept the gap with option("late", True).',
        )
    others = [name.removeprefix(origin_prefix(relation)) for name in last if name != origin]
    if others and origin not in last and not shared:
        raise InUse(
            f"{relation} is written by another stream",
            detail=f"{others[0]} wrote it before {query}. A stream that lost its checkpoint has a new name, and "
            "would insert its rows a second time.",
            hint='If both should write it, add option("shared", True).',
        )

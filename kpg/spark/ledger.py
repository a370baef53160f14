"""Which micro-batches of which streams a db has taken in: what makes a repeated one harmless.

    origin(relation, query)  the name under which the db counts the batches of a query that writes a relation
    decide(...)              whether a batch is new, was there before, or must be refused

Batches of a stream come in order, each once: a batch at or before the last is a repetition, one beyond the next means
that some are missing. The db keeps the last batch of each origin with its rows, on disk if it has one.
"""

from __future__ import annotations

from collections.abc import Mapping

from kpg.errors import InputError, InUse

PREFIX = "spark stream into "


def origin_prefix(relation: str) -> str:
    """How the origins of all streams into a relation begin."""
    return f"{PREFIX}{relation}: "


def origin_of(relation: str, query: str) -> str:
    """The name of a stream into a relation."""
    return origin_prefix(relation) + query


def is_repeated(last: Mapping[str, int], relation: str, query: str, batch: int) -> bool:
    """Whether a batch is in the db already; `last` has the last batch of each stream into the relation."""
    return batch <= last.get(origin_of(relation, query), -1)


def check_order(
    last: Mapping[str, int], relation: str, query: str, batch: int, *, shared: bool = False, late: bool = False
) -> None:
    """Refuse a batch that would leave a gap, and a second stream into one relation."""
    mine = origin_of(relation, query)
    expected = last.get(mine, -1) + 1
    if batch > expected and not late:
        seen = f"batches up to {expected - 1}" if expected else "none"
        raise InputError(
            f"stream {query} comes with batch {batch}, this db has {seen}",
            detail=f"Batches {expected} to {batch - 1} went elsewhere; their rows are not in {relation}.",
            hint='Start the stream with a new checkpoint, or take what comes with option("late", True).',
        )
    others = [name.removeprefix(origin_prefix(relation)) for name in last if name != mine]
    if others and mine not in last and not shared:
        raise InUse(
            f"{relation} is written by another stream",
            detail=f"{others[0]} wrote it before {query} came. A stream that lost its checkpoint has a new name, and "
            "would bring its rows a second time.",
            hint='If both should write it, say option("shared", True).',
        )

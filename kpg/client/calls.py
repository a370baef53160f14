"""The calls of a client: functions that return a request, and the function that turns its replies into a result.

Both connections, the blocking one and the asyncio one, have a method for each. The docstrings describe those methods.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Literal

import pyarrow as pa

from kpg.client.change_feed import ChangeFeed
from kpg.client.conversation import Call
from kpg.columns.rows import rows_of
from kpg.columns.schema import parse_type
from kpg.errors import SchemaMismatch
from kpg.protocol import parts, replies, requests
from kpg.protocol.messages import VERSION
from kpg.protocol.table_messages import schema_from, table_of

KEY_BYTES = 16  # of the secret that continues an interest: too many to guess
Arguments = Mapping[str, Any] | Sequence[Mapping[str, Any]]
Right = Literal["read", "write"]
Change = tuple[str, Sequence[Any]] | tuple[str, Sequence[Any], int]


def hello(token: str | None) -> Call[replies.WelcomeReply]:
    """Open the session."""
    return Call(lambda id: requests.HelloRequest(id, VERSION, token), last_reply)


def last_reply(answers: Sequence[Any]) -> Any:
    """Return the last reply."""
    return answers[-1]


def time_of(answers: Sequence[replies.DoneReply]) -> int | None:
    """Return the time of the last reply."""
    return answers[-1].time


def ping() -> Call[int | None]:
    """Return the last complete time; the engine is alive if this returns."""
    return Call(requests.PingRequest, time_of, repeatable=True)


def create_relation(
    name: str,
    columns: Mapping[str, Any],
    *,
    semantics: parts.Semantics = "distinct",
    key: str | Sequence[str] | None = None,
    order: str | None = None,
) -> Call[int | None]:
    """Create a relation; columns map names to types, Python's or by name."""
    specs = tuple(parts.ColumnSpec(column, type_name(spec)) for column, spec in columns.items())
    keys = (key,) if isinstance(key, str) else None if key is None else tuple(key)
    return Call(lambda id: requests.CreateRelationRequest(id, name, specs, semantics, keys, order), time_of)


def type_name(spec: Any) -> str:
    """Return a type as messages write it."""
    return spec if isinstance(spec, str) else str(parse_type(spec))


def create_attribute(name: str, value: Any, *, semantics: parts.Semantics = "distinct") -> Call[int | None]:
    """Create an attribute, like `:person/name`, with values of this type."""
    return Call(lambda id: requests.CreateAttributeRequest(id, name, type_name(value), semantics), time_of)


def drop_relation(name: str) -> Call[int | None]:
    """Drop a relation or attribute with its rows, unless a rule, an interest or a view reads it."""
    return Call(lambda id: requests.DropRelationRequest(id, name), time_of)


def transact(changes: Iterable[Change], *, origin: tuple[str, int] | None = None, at: int | None = None) -> Call[int]:
    """Apply changes at one time, all or none: (relation, row) or (relation, row, diff). Return that time.

    With `at`, a later time, the changes take effect when that time is closed. With an `origin`, a writer and the number
    of its batch, they take effect once: if the connection is lost, the client sends them again.
    """
    triples = [change if len(change) == 3 else (*change, 1) for change in changes]
    blocks = tuple(
        parts.BlockSpec(relation, tuple(tuple(row) for _, row, _ in group), diff)
        for (relation, diff), group in groupby(triples, key=lambda change: (change[0], change[2]))
    )
    source = parts.OriginSpec(*origin) if origin is not None else None
    return Call(
        lambda id: requests.TransactRequest(id, blocks, source, at),
        lambda answers: int(answers[-1].time),
        repeatable=source is not None,
    )


def insert(relation: str, rows: Any, *, origin: tuple[str, int] | None = None) -> Call[int]:
    """Insert rows at one time: tuples, an Arrow table, or a pandas or polars frame. Return the time."""
    return transact([(relation, row, 1) for row in as_rows(rows)], origin=origin)


def remove(relation: str, rows: Any, *, origin: tuple[str, int] | None = None) -> Call[int]:
    """Remove rows at one time; return the time."""
    return transact([(relation, row, -1) for row in as_rows(rows)], origin=origin)


def as_rows(rows: Any) -> Iterable[Sequence[Any]]:
    """Return rows as tuples, from tuples or a table."""
    if hasattr(rows, "to_arrow"):  # polars
        rows = rows.to_arrow()
    elif hasattr(rows, "to_records") and hasattr(rows, "columns"):  # pandas
        rows = pa.Table.from_pandas(rows, preserve_index=False)
    if isinstance(rows, pa.Table | pa.RecordBatch):
        return rows_of(rows if isinstance(rows, pa.Table) else pa.table(rows))
    if isinstance(rows, str | bytes | Mapping):
        raise SchemaMismatch(f"rows cannot be a {type(rows).__name__}", hint="Give a list of tuples, or a table.")
    return [tuple(row) for row in rows]


def register(text: Any, *, language: parts.Language = "datalog", name: str | None = None) -> Call[tuple[str, ...]]:
    """Store rules, in Datalog, EDN or as plans (a dict); return their names. Nothing is computed yet."""
    plan = None if isinstance(text, str) else text
    words = None if plan is not None else text
    written_in: parts.Language = "plan" if plan is not None else language
    return Call(
        lambda id: requests.RegisterRequest(id, words, plan, written_in, name), lambda answers: answers[-1].names
    )


def unregister(name: str) -> Call[int | None]:
    """Remove a rule that has no interests."""
    return Call(lambda id: requests.UnregisterRequest(id, name), time_of)


def grant(name: str, tenant: str, right: Right) -> Call[int | None]:
    """Let a tenant, or "*" for all tenants, read or write a relation, attribute or rule."""
    return Call(lambda id: requests.GrantRequest(id, name, tenant, right), time_of)


def revoke(name: str, tenant: str, right: Right) -> Call[int | None]:
    """Take a right back from a tenant."""
    return Call(lambda id: requests.RevokeRequest(id, name, tenant, right), time_of)


def interest(
    name: str,
    *,
    arguments: Arguments | None = None,
    sharing: str = "auto",
    joins: str = "auto",
    granularity: float | None = None,
    log: bool = True,
    credit: int = 8,
    limits: Mapping[str, float | None] | None = None,
) -> Call[replies.InterestedReply]:
    """Follow a rule or relation; the server sends at most `credit` steps ahead of those that were read."""
    rows, own_limits = as_arguments(arguments), as_limits(limits)
    key = secrets.token_urlsafe(KEY_BYTES)
    return Call(
        lambda id: requests.InterestRequest(
            id, name, rows, sharing, joins, granularity, log, credit=credit, limits=own_limits, key=key
        ),
        last_reply,
        repeatable=True,  # the key tells the server that it is the same
    )


def as_limits(limits: Mapping[str, float | None] | None) -> dict[str, Any] | None:
    """Return the limits of a request, as messages have them."""
    return None if limits is None else dict(limits)


def as_arguments(arguments: Arguments | None) -> tuple[dict[str, Any], ...] | None:
    """Return one argument or many, as messages have them."""
    if arguments is None:
        return None
    return tuple(dict(row) for row in ([arguments] if isinstance(arguments, Mapping) else arguments))


def add_arguments(feed: ChangeFeed, arguments: Arguments) -> Call[int | None]:
    """Add arguments to an interest; those it has already are ignored."""
    rows = as_arguments(arguments) or ()

    def finish(answers: Sequence[replies.DoneReply]) -> int | None:
        feed.add_arguments(rows)
        return time_of(answers)

    return Call(lambda id: requests.AddArgumentsRequest(id, feed.interest, rows), finish, repeatable=True)


def remove_arguments(feed: ChangeFeed, arguments: Arguments) -> Call[int | None]:
    """Remove arguments from an interest."""
    rows = as_arguments(arguments) or ()

    def finish(answers: Sequence[replies.DoneReply]) -> int | None:
        feed.remove_arguments(rows)
        return time_of(answers)

    return Call(lambda id: requests.RemoveArgumentsRequest(id, feed.interest, rows), finish)


def sink(
    name: str,
    path: str,
    *,
    type: str = "file",
    format: str | None = None,
    arguments: Arguments | None = None,
    granularity: float | None = None,
    log: bool = True,
) -> Call[int]:
    """Have the server write an answer to a file in its directory for sinks: `file` its changes, as jsonl or csv, or
    `latency`, the milliseconds of each epoch. Return the number of the interest. Needs the role admin."""
    sink_type: Any = type
    sink_format: Any = format
    rows, target = as_arguments(arguments), parts.SinkSpec(sink_type, path, sink_format)
    return Call(
        lambda id: requests.InterestRequest(id, name, rows, granularity=granularity, log=log, sink=target),
        lambda answers: int(answers[-1].interest),
    )


def uninterest(interest: int) -> Call[int | None]:
    """End an interest."""
    return Call(lambda id: requests.UninterestRequest(id, interest), time_of)


def take(feed: ChangeFeed) -> Call[int | None]:
    """Have the server send all unsent changes of an interest."""
    return Call(lambda id: requests.TakeRequest(id, feed.interest), time_of, repeatable=True)


def sql(
    text: str,
    *values: Any,
    limit: int | None = None,
    limits: Mapping[str, float | None] | None = None,
    **parameters: Any,
) -> Call[pa.Table]:
    """Execute SQL statements; return the rows of the last one. `:name` takes a keyword argument, `$1` the first value.

    The metadata of the table has the `tag` of the statement, such as INSERT 0 1.
    """
    named = {str(number): value for number, value in enumerate(values, 1)} | parameters
    return Call(lambda id: requests.SqlRequest(id, text, named or None, limit, as_limits(limits)), joined_pages)


def query(
    text: str,
    *,
    language: parts.Language | None = None,
    arguments: Arguments | None = None,
    as_of: int | None = None,
    limit: int | None = None,
    limits: Mapping[str, float | None] | None = None,
) -> Call[pa.Table]:
    """Return the rows of an answer, by name or text; as of a time, for which the server waits.

    The metadata of the table has the `time`, and whether a limit `cut` the rows.
    """
    rows, own_limits = as_arguments(arguments), as_limits(limits)
    return Call(
        lambda id: requests.QueryRequest(id, text, language, rows, as_of, limit, own_limits),
        joined_pages,
        repeatable=True,
    )


def joined_pages(pages: Sequence[replies.RowsReply]) -> pa.Table:
    """Return the pages of an answer as one table; `time`, `cut` and the `tag` of SQL are in its metadata."""
    schema = schema_from(pages[0].columns)
    table = table_of(schema, [row for page in pages for row in page.rows])
    last = pages[-1]
    tag = {} if last.tag is None else {"tag": last.tag}
    return table.replace_schema_metadata({"time": str(last.time), "cut": str(last.cut).lower(), **tag})


def explain(name: str) -> Call[str]:
    """Explain how a rule is or would be computed."""
    return Call(lambda id: requests.ExplainRequest(id, name), lambda answers: str(answers[-1].text), repeatable=True)


def catalog() -> Call[tuple[parts.RelationSpec, ...]]:
    """Return the relations, attributes and rules of the server."""
    return Call(requests.CatalogRequest, lambda answers: answers[-1].relations, repeatable=True)


def inspect(table: str, name: str | None = None) -> Call[pa.Table]:
    """Return the state of the server as a table; docs/protocol.md lists the tables."""
    return Call(lambda id: requests.InspectRequest(id, table, name), joined_pages, repeatable=True)


def stop(number: int | None = None, *, session: int | None = None) -> Call[int | None]:
    """Stop the query of an interest, or the requests that a session waits for; for admins."""
    return Call(lambda id: requests.StopRequest(id, number, session), time_of)


def observe(attributes: Sequence[str] | None = None, *, every: float = 0.0) -> Call[tuple[str, ...]]:
    """Offer the engine's events as attributes; return the new ones. Needs the role admin."""
    wanted = None if attributes is None else tuple(attributes)
    return Call(lambda id: requests.ObserveRequest(id, wanted, every), lambda answers: answers[-1].names)


def advance(to: int | None = None) -> Call[int | None]:
    """Move the clock; return the last complete time. Needs the role admin."""
    return Call(lambda id: requests.AdvanceRequest(id, to), time_of)


def close_input(relation: str) -> Call[int | None]:
    """Close a relation: it accepts no more changes. Needs the role admin."""
    return Call(lambda id: requests.CloseInputRequest(id, relation), time_of)


def shutdown() -> Call[int | None]:
    """End the server in good order. Needs the role admin."""
    return Call(requests.ShutdownRequest, time_of)

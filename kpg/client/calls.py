"""What can be asked of a server: each a function that says which request it is and what the reply means.

Both connections, the one that waits and the one that is awaited, take their methods from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa

from kpg.client.conversation import Call
from kpg.columns.rows import rows_of
from kpg.columns.schema import parse_type
from kpg.errors import SchemaMismatch
from kpg.protocol import parts, replies, requests
from kpg.protocol.messages import VERSION
from kpg.protocol.table_messages import schema_from, table_of

Arguments = Mapping[str, Any] | Sequence[Mapping[str, Any]]
Change = tuple[str, Sequence[Any]] | tuple[str, Sequence[Any], int]


def hello(token: str | None) -> Call[replies.WelcomeReply]:
    """Begin."""
    return Call(lambda id: requests.HelloRequest(id, VERSION, token), only)


def only(found: Sequence[Any]) -> Any:
    """The one reply."""
    return found[-1]


def time_of(found: Sequence[replies.DoneReply]) -> int | None:
    """The time that a reply says."""
    return found[-1].time


def ping() -> Call[int | None]:
    """The last complete time; the engine is there if this returns."""
    return Call(requests.PingRequest, time_of)


def create_relation(
    name: str,
    columns: Mapping[str, Any],
    *,
    semantics: parts.Semantics = "distinct",
    key: str | Sequence[str] | None = None,
    order: str | None = None,
) -> Call[int | None]:
    """Make a relation; columns are given as names and types, Python's or by name."""
    made = tuple(parts.ColumnSpec(column, type_name(spec)) for column, spec in columns.items())
    keys = (key,) if isinstance(key, str) else None if key is None else tuple(key)
    return Call(lambda id: requests.CreateRelationRequest(id, name, made, semantics, keys, order), time_of)


def type_name(spec: Any) -> str:
    """A type as it is written in messages."""
    return spec if isinstance(spec, str) else str(parse_type(spec))


def create_attribute(name: str, value: Any, *, semantics: parts.Semantics = "distinct") -> Call[int | None]:
    """Make an attribute, like `:person/name`, whose values have this type."""
    return Call(lambda id: requests.CreateAttributeRequest(id, name, type_name(value), semantics), time_of)


def transact(changes: Iterable[Change], *, origin: tuple[str, int] | None = None) -> Call[int]:
    """Changes at one time, all or none: (relation, row) or (relation, row, diff). Returns that time."""
    given = [change if len(change) == 3 else (*change, 1) for change in changes]
    blocks = tuple(
        parts.BlockSpec(relation, tuple(tuple(row) for _, row, _ in group), diff)
        for (relation, diff), group in groupby(given, key=lambda change: (change[0], change[2]))
    )
    source = parts.OriginSpec(*origin) if origin is not None else None
    return Call(lambda id: requests.TransactRequest(id, blocks, source), lambda found: int(found[-1].time))


def insert(relation: str, rows: Any) -> Call[int]:
    """Put rows into a relation at one time: tuples, an Arrow table, or a pandas or polars frame. Returns the time."""
    return transact([(relation, row, 1) for row in as_rows(rows)])


def remove(relation: str, rows: Any) -> Call[int]:
    """Take rows out of a relation at one time; returns the time."""
    return transact([(relation, row, -1) for row in as_rows(rows)])


def as_rows(rows: Any) -> Iterable[Sequence[Any]]:
    """Rows of tuples or of a table, by position."""
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
    """Store rules, in Datalog, EDN or as plans (a dict); returns what can be asked for. Nothing is computed yet."""
    plan = None if isinstance(text, str) else text
    words = None if plan is not None else text
    said: parts.Language = "plan" if plan is not None else language
    return Call(lambda id: requests.RegisterRequest(id, words, plan, said, name), lambda found: found[-1].names)


def unregister(name: str) -> Call[int | None]:
    """Forget rules that nobody is interested in."""
    return Call(lambda id: requests.UnregisterRequest(id, name), time_of)


def follow(
    name: str,
    *,
    arguments: Arguments | None = None,
    sharing: str = "auto",
    joins: str = "auto",
    granularity: float | None = None,
    log: bool = True,
    credit: int = 8,
) -> Call[replies.InterestedReply]:
    """Follow a rule or relation."""
    given = as_arguments(arguments)
    return Call(
        lambda id: requests.InterestRequest(id, name, given, sharing, joins, granularity, log, credit=credit), only
    )  # fmt: skip


def as_arguments(given: Arguments | None) -> tuple[dict[str, Any], ...] | None:
    """One argument or many, as messages have them."""
    if given is None:
        return None
    return tuple(dict(each) for each in ([given] if isinstance(given, Mapping) else given))


def add_arguments(interest: int, arguments: Arguments) -> Call[int | None]:
    """Ask an interest for more arguments."""
    return Call(lambda id: requests.AddArgumentsRequest(id, interest, as_arguments(arguments) or ()), time_of)


def remove_arguments(interest: int, arguments: Arguments) -> Call[int | None]:
    """Ask an interest for fewer arguments."""
    return Call(lambda id: requests.RemoveArgumentsRequest(id, interest, as_arguments(arguments) or ()), time_of)


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
    `latency`, the milliseconds of each epoch. Returns the number of the interest. Needs the role admin."""
    kind: Any = type
    given = as_arguments(arguments)
    written: Any = format
    place = parts.SinkSpec(kind, path, written)
    return Call(
        lambda id: requests.InterestRequest(id, name, given, granularity=granularity, log=log, sink=place),
        lambda found: int(found[-1].interest),
    )


def uninterest(interest: int) -> Call[int | None]:
    """End an interest."""
    return Call(lambda id: requests.UninterestRequest(id, interest), time_of)


def take(interest: int) -> Call[int | None]:
    """Have everything that waits of an interest sent."""
    return Call(lambda id: requests.TakeRequest(id, interest), time_of)


def query(
    text: str,
    *,
    language: parts.Language | None = None,
    arguments: Arguments | None = None,
    as_of: int | None = None,
    limit: int | None = None,
) -> Call[pa.Table]:
    """The rows of an answer, by name or text; as of a time, for which it waits. A cut one says so in its metadata."""
    given = as_arguments(arguments)
    return Call(lambda id: requests.QueryRequest(id, text, language, given, as_of, limit), gathered)


def gathered(pages: Sequence[replies.RowsReply]) -> pa.Table:
    """The pages of an answer as one table; `time` and `cut` are in its metadata."""
    schema = schema_from(pages[0].columns)
    table = table_of(schema, [row for page in pages for row in page.rows])
    last = pages[-1]
    return table.replace_schema_metadata({"time": str(last.time), "cut": str(last.cut).lower()})


def explain(name: str) -> Call[str]:
    """How a rule is or would be computed."""
    return Call(lambda id: requests.ExplainRequest(id, name), lambda found: str(found[-1].text))


def catalog() -> Call[tuple[parts.RelationSpec, ...]]:
    """The relations, attributes and rules there are."""
    return Call(requests.CatalogRequest, lambda found: found[-1].relations)


def observe(attributes: Sequence[str] | None = None, *, every: float = 0.0) -> Call[tuple[str, ...]]:
    """Have the engine's events as attributes; returns those that are new. Needs the role admin."""
    wanted = None if attributes is None else tuple(attributes)
    return Call(lambda id: requests.ObserveRequest(id, wanted, every), lambda found: found[-1].names)


def advance(to: int | None = None) -> Call[int | None]:
    """Move the clock; returns the last complete time. Needs the role admin."""
    return Call(lambda id: requests.AdvanceRequest(id, to), time_of)


def close_input(relation: str) -> Call[int | None]:
    """No more changes will come to a relation. Needs the role admin."""
    return Call(lambda id: requests.CloseInputRequest(id, relation), time_of)


def shutdown() -> Call[int | None]:
    """End the server in good order. Needs the role admin."""
    return Call(requests.ShutdownRequest, time_of)

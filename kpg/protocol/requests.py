"""The requests of clients, one class a message, its fields the members of the JSON object.

Each has an `id` of the client's choice and gets a reply with that id, except `ack`. The first request is `hello`.
To add a request: define it here, add its handler to kpg/server/request_handlers.py and its call to kpg/client/calls.py,
and add an example to docs/protocol.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal

from kpg.protocol.definitions import MessageKinds, message
from kpg.protocol.parts import (
    Arguments,
    BlockSpec,
    Columns,
    Key,
    Language,
    OriginSpec,
    Semantics,
    SinkSpec,
    Text,
    Token,
)
from kpg.protocol.strict_decoder import Between, Count, Json, Name, Value

REQUESTS: Final = MessageKinds["AnyRequest"]()


@dataclass(frozen=True, slots=True)
class Request:
    """A request of a client; the reply has the same id."""

    kind: ClassVar[str]
    needs_admin: ClassVar[bool] = False
    id: Count


@message("hello", REQUESTS)
class HelloRequest(Request):
    """The first request: the version of the protocol, and the token if the server wants one."""

    version: Count
    token: Token | None = None


@message("ping", REQUESTS)
class PingRequest(Request):
    """Check that the engine is alive and ask for the last complete time. Answered by `done`."""


@message("create_relation", REQUESTS)
class CreateRelationRequest(Request):
    """Make a relation. `cardinality-one` needs a key, `last-write-wins` a key and the column that orders writes."""

    name: Name
    columns: Columns
    semantics: Semantics = "distinct"
    key: tuple[Name, ...] | None = None
    order: Name | None = None


@message("create_attribute", REQUESTS)
class CreateAttributeRequest(Request):
    """Make an attribute: a binary relation from entities (numbers) to values of this type."""

    name: Name
    value: Name
    semantics: Semantics = "distinct"


@message("drop_relation", REQUESTS)
class DropRelationRequest(Request):
    """Drop a relation or attribute with its rows; refused while a rule, an interest or a view reads it."""

    name: Name


@message("transact", REQUESTS)
class TransactRequest(Request):
    """Apply changes at one time, all or none. `done` gives the time, which is complete by then.

    With `at`, a later time, the changes are kept and take effect when that time is closed.
    """

    changes: tuple[BlockSpec, ...]
    origin: OriginSpec | None = None
    at: Count | None = None


@message("register", REQUESTS)
class RegisterRequest(Request):
    """Store and check rules: a text in Datalog or EDN, or plans as JSON. Nothing is computed before an interest."""

    text: Text | None = None
    plan: Json = None
    language: Language = "datalog"
    name: Name | None = None


@message("unregister", REQUESTS)
class UnregisterRequest(Request):
    """Remove a rule that has no interests."""

    name: Name


@message("grant", REQUESTS)
class GrantRequest(Request):
    """Let a tenant, or "*" for all tenants, read or write a relation, attribute or rule. Answered by `done`."""

    name: Name
    tenant: Name
    right: Literal["read", "write"]


@message("revoke", REQUESTS)
class RevokeRequest(Request):
    """Take a right back. Answered by `done`."""

    name: Name
    tenant: Name
    right: Literal["read", "write"]


@message("interest", REQUESTS)
class InterestRequest(Request):
    """Follow a rule or relation: `interested`, then `changes` until `uninterest` or the end of the connection.

    `arguments` fix columns by name, once or many times: `[{"x": "ann"}, {"x": "bob"}]`. `credit` is the number of
    `changes` that the server sends before it waits for an `ack`; changes that wait are consolidated. `granularity`
    (seconds) is the least time between two of them. A `sink` takes the output instead of this connection.
    `limits` are limits for this query alone, as in `{"step_rows": 1000000}`; so also in `query` and `sql`.

    With a `key`, a secret that the client draws at random, the server holds the interest for a while when the
    connection is lost. The same request with the same key, on a new connection, continues after `step`, the last step
    that the client has received whole. If the server no longer holds the interest, it makes a new one, and the first
    step is a `reset`.
    """

    name: Name
    arguments: Arguments | None = None
    sharing: Name = "auto"
    joins: Name = "auto"
    granularity: Annotated[float, Between(0, 86_400)] | None = None
    log: bool = True
    sink: SinkSpec | None = None
    credit: Annotated[int, Between(0, 1_000)] | None = None
    limits: dict[str, Value] | None = None
    key: Key | None = None
    step: Count = 0


@message("add_arguments", REQUESTS)
class AddArgumentsRequest(Request):
    """Add arguments to an interest that has some: an update, not a new dataflow."""

    interest: Count
    arguments: Arguments


@message("remove_arguments", REQUESTS)
class RemoveArgumentsRequest(Request):
    """Remove arguments from an interest; the rows that go arrive as changes."""

    interest: Count
    arguments: Arguments


@message("uninterest", REQUESTS)
class UninterestRequest(Request):
    """End an interest; the last one drops the dataflow."""

    interest: Count


@message("cancel", REQUESTS)
class CancelCallRequest(Request):
    """Stop another request of this session, which gets `error`; does nothing if that has its reply already."""

    request: Count


@message("take", REQUESTS)
class TakeRequest(Request):
    """Send all unsent changes of an interest now, without regard to credit: `changes` (perhaps empty), then `done`."""

    interest: Count


@message("query", REQUESTS)
class QueryRequest(Request):
    """Ask once, by a text or by the name of a rule or relation: `rows`. A read as of a time waits for that time."""

    text: Text
    language: Language | None = None
    arguments: Arguments | None = None
    as_of: Count | None = None
    limit: Count | None = None
    limits: dict[str, Value] | None = None


@message("sql", REQUESTS)
class SqlRequest(Request):
    """Execute SQL statements: `rows` of the last one, with its `tag`. `parameters` are the values of `:name`."""

    text: Text
    parameters: dict[str, Value] | None = None
    limit: Count | None = None
    limits: dict[str, Value] | None = None


@message("explain", REQUESTS)
class ExplainRequest(Request):
    """Explain how a rule is or would be computed: `explained`."""

    name: Name


@message("catalog", REQUESTS)
class CatalogRequest(Request):
    """List the relations and rules: `catalogued`."""


@message("inspect", REQUESTS)
class InspectRequest(Request):
    """Ask for the state of the server as a table: `rows`. `name` is that of a dataflow, or of an arrangement."""

    table: Name
    name: Name | None = None


@message("stop", REQUESTS)
class StopRequest(Request):
    """Stop the query of an interest, by its number, or the requests that a session waits for. Needs the role admin.

    The session that it belongs to gets `ended`, or `error`, with the error `Stopped`.
    """

    needs_admin: ClassVar[bool] = True
    number: Count | None = None
    session: Count | None = None


@message("observe", REQUESTS)
class ObserveRequest(Request):
    """Offer the engine's events as attributes, all or some, written at most every `every` seconds. Needs role admin.

    The reply names the new ones. Follow them with `log` false, or following them is logged as well.
    """

    needs_admin: ClassVar[bool] = True
    attributes: tuple[Name, ...] | None = None
    every: Annotated[float, Between(0, 86_400)] = 0.0


@message("advance", REQUESTS)
class AdvanceRequest(Request):
    """Move the clock, to the next time or to the one given. Needs the role admin."""

    needs_admin: ClassVar[bool] = True
    to: Count | None = None


@message("close_input", REQUESTS)
class CloseInputRequest(Request):
    """Close a relation: it accepts no more changes. Needs the role admin."""

    needs_admin: ClassVar[bool] = True
    relation: Name


@message("shutdown", REQUESTS)
class ShutdownRequest(Request):
    """End the server in good order. Needs the role admin."""

    needs_admin: ClassVar[bool] = True


@message("ack", REQUESTS)
class AckRequest:
    """Allow more `changes` of an interest that was requested with `credit`. It has no id and no reply.

    `step` is the last step that the client has received whole: it will not ask for that one again.
    """

    kind: ClassVar[str]
    interest: Count
    credit: Annotated[int, Between(1, 1_000)] = 1
    step: Count = 0


AnyRequest = Request | AckRequest

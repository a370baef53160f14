"""What a client asks, one class a message, its fields the members of the JSON object.

Each has an `id` of the client's choice and gets a reply with that id, except `ack`. The first is `hello`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final

from kpg.protocol.parts import Arguments, Block, Columns, Language, Origin, Semantics, Sink, Text, Token
from kpg.protocol.strict_decoder import Between, Count, Json, Name


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asks; the reply has the same id."""

    id: Count


@dataclass(frozen=True, slots=True)
class Hello(Request):
    """The first request: which version of the protocol, and the token if the server wants one."""

    kind: ClassVar = "hello"
    version: Count
    token: Token | None = None


@dataclass(frozen=True, slots=True)
class Ping(Request):
    """Is the engine there, and which time is complete? Answered by `done`."""

    kind: ClassVar = "ping"


@dataclass(frozen=True, slots=True)
class CreateRelation(Request):
    """Make a relation. `cardinality-one` needs a key, `last-write-wins` a key and the column that orders writes."""

    kind: ClassVar = "create_relation"
    name: Name
    columns: Columns
    semantics: Semantics = "distinct"
    key: tuple[Name, ...] | None = None
    order: Name | None = None


@dataclass(frozen=True, slots=True)
class CreateAttribute(Request):
    """Make an attribute: a binary relation from entities (numbers) to values of this type."""

    kind: ClassVar = "create_attribute"
    name: Name
    value: Name
    semantics: Semantics = "distinct"


@dataclass(frozen=True, slots=True)
class Transact(Request):
    """Changes that happen at one time, all or none; `done` says the time, complete by then."""

    kind: ClassVar = "transact"
    changes: tuple[Block, ...]
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class Register(Request):
    """Store and check rules: a text in Datalog or EDN, or plans as JSON. Nothing is computed before an interest."""

    kind: ClassVar = "register"
    text: Text | None = None
    plan: Json = None
    language: Language = "datalog"
    name: Name | None = None


@dataclass(frozen=True, slots=True)
class Unregister(Request):
    """Forget a rule that nobody is interested in."""

    kind: ClassVar = "unregister"
    name: Name


@dataclass(frozen=True, slots=True)
class Interest(Request):
    """Follow a rule or relation: `interested`, then `changes` until `uninterest` or the end of the connection.

    `arguments` fix columns by name, once or many times: `[{"x": "ann"}, {"x": "bob"}]`. With `credit`, so many
    `changes` are sent, and one more for each `ack`; what waits meanwhile is consolidated. `granularity` (seconds) is
    the least time between them. A `sink` takes the output instead of this connection.
    """

    kind: ClassVar = "interest"
    name: Name
    arguments: Arguments | None = None
    sharing: Name = "auto"
    joins: Name = "auto"
    granularity: Annotated[float, Between(0, 86_400)] | None = None
    log: bool = True
    sink: Sink | None = None
    credit: Annotated[int, Between(1, 1_000)] | None = None


@dataclass(frozen=True, slots=True)
class AddArguments(Request):
    """Ask an interest that has arguments for more of them: an update, not a new dataflow."""

    kind: ClassVar = "add_arguments"
    interest: Count
    arguments: Arguments


@dataclass(frozen=True, slots=True)
class RemoveArguments(Request):
    """Ask an interest for fewer arguments; the rows that go are told as changes."""

    kind: ClassVar = "remove_arguments"
    interest: Count
    arguments: Arguments


@dataclass(frozen=True, slots=True)
class Uninterest(Request):
    """Follow no longer; the last one drops the dataflow."""

    kind: ClassVar = "uninterest"
    interest: Count


@dataclass(frozen=True, slots=True)
class Take(Request):
    """Have what waits of an interest sent now, whatever its credit: `changes`, also without rows, then `done`."""

    kind: ClassVar = "take"
    interest: Count


@dataclass(frozen=True, slots=True)
class Query(Request):
    """Ask once, a text or the name of a rule or relation: `rows`. A read as of a time waits for it."""

    kind: ClassVar = "query"
    text: Text
    language: Language | None = None
    arguments: Arguments | None = None
    as_of: Count | None = None
    limit: Count | None = None


@dataclass(frozen=True, slots=True)
class Explain(Request):
    """How a rule is or would be computed: `explained`."""

    kind: ClassVar = "explain"
    name: Name


@dataclass(frozen=True, slots=True)
class Catalog(Request):
    """Which relations and rules there are: `catalogued`."""

    kind: ClassVar = "catalog"


@dataclass(frozen=True, slots=True)
class Observe(Request):
    """Have the engine's events as attributes, all or some, written every so many seconds at most. Needs the role admin.

    The reply names those that are new. Follow them with `log` false, or following is itself news.
    """

    kind: ClassVar = "observe"
    attributes: tuple[Name, ...] | None = None
    every: Annotated[float, Between(0, 86_400)] = 0.0


@dataclass(frozen=True, slots=True)
class Advance(Request):
    """Move the clock, to the next time or to the one given. Needs the role admin."""

    kind: ClassVar = "advance"
    to: Count | None = None


@dataclass(frozen=True, slots=True)
class CloseInput(Request):
    """No more changes will come to a relation. Needs the role admin."""

    kind: ClassVar = "close_input"
    relation: Name


@dataclass(frozen=True, slots=True)
class Shutdown(Request):
    """End the server in good order. Needs the role admin."""

    kind: ClassVar = "shutdown"


@dataclass(frozen=True, slots=True)
class Ack:
    """Allows more `changes` of an interest that was asked for with `credit`. It has no id and no reply."""

    kind: ClassVar = "ack"
    interest: Count
    credit: Annotated[int, Between(1, 1_000)] = 1


AnyRequest = (
    Hello | Ping | CreateRelation | CreateAttribute | Transact | Register | Unregister | Interest | AddArguments
    | RemoveArguments | Uninterest | Take | Query | Explain | Catalog | Observe | Advance | CloseInput | Shutdown | Ack
)  # fmt: skip
REQUESTS: Final[tuple[type[AnyRequest], ...]] = (
    Hello, Ping, CreateRelation, CreateAttribute, Transact, Register, Unregister, Interest, AddArguments,
    RemoveArguments, Uninterest, Take, Query, Explain, Catalog, Observe, Advance, CloseInput, Shutdown, Ack,
)  # fmt: skip

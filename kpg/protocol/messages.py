"""Every message of version 1, as it travels: one class a message, its fields the members of the JSON object.

A client asks with REQUESTS, each with an `id` of its choice, and gets one of REPLIES (or several `rows`, all but the
last with `more`) with that id; `error` is a reply to anything. PUSHED messages come by themselves. The first request
is `hello`. `docs/protocol.md` tells the story, `docs/protocol.schema.json` is made from these classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal

from kpg.protocol.shapes import Between, Count, Json, Name, Rows, Size, Value
from kpg.protocol.values import EXACT

VERSION: Final = 1

Text = Annotated[str, Size(0, 4_000_000)]
Token = Annotated[str, Size(0, 500)]
Language = Literal["datalog", "edn", "plan"]
Semantics = Literal["raw", "distinct", "cardinality-one", "last-write-wins"]
Arguments = Annotated[tuple[dict[str, Value], ...], Size(1, 1_000_000)]
Columns = Annotated[tuple["Column", ...], Size(1, 1_000)]


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name and its type, as `int64`, `string?`, `decimal(10,2)`."""

    name: Name
    type: Name


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of one relation, all with the same diff: 1 inserts them, -1 removes them."""

    relation: Name
    rows: Rows
    diff: Annotated[int, Between(-EXACT, EXACT)] = 1


@dataclass(frozen=True, slots=True)
class Origin:
    """Says that a transaction is batch so-and-so of a writer: a batch that was applied before has no effect."""

    writer: Name
    batch: Count


@dataclass(frozen=True, slots=True)
class Position:
    """Where something is wrong: line and column of a text from 1, or the path in a message."""

    line: int | None = None
    column: int | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """Why something failed: the class of the error, and what it says."""

    error: Name
    what: str
    detail: str | None = None
    hint: str | None = None
    position: Position | None = None


# Requests


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
class Sink:
    """Where output goes instead, a file in the server's directory for sinks: `file` has the changes, `latency` the
    milliseconds of each closed epoch."""

    type: Literal["file", "latency"]
    path: Name
    format: Literal["jsonl", "csv"] | None = None


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


# Replies


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server answers to the request with this id."""

    id: Count


@dataclass(frozen=True, slots=True)
class Welcome(Reply):
    """The answer to `hello`: version and role, the number of the session, and what is allowed in it."""

    kind: ClassVar = "welcome"
    version: Count
    server: str
    role: Literal["admin", "user"]
    session: Count
    limits: dict[str, float]


@dataclass(frozen=True, slots=True)
class Done(Reply):
    """It is done; `time` is the last complete one, or that of the transaction."""

    kind: ClassVar = "done"
    time: int | None = None


@dataclass(frozen=True, slots=True)
class Registered(Reply):
    """The names of the rules that are known now."""

    kind: ClassVar = "registered"
    names: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class Interested(Reply):
    """The number of the interest, and the columns of its rows."""

    kind: ClassVar = "interested"
    interest: Count
    name: Name
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Table(Reply):
    """Rows of an answer. With `more`, further rows follow under the same id; `cut` says that a limit ended it."""

    kind: ClassVar = "rows"
    columns: tuple[Column, ...]
    rows: Rows
    time: int | None = None
    more: bool = False
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Explained(Reply):
    """A text for people."""

    kind: ClassVar = "explained"
    text: str


@dataclass(frozen=True, slots=True)
class Relation:
    """What is known of a relation, attribute or rule."""

    name: Name
    role: Literal["relation", "attribute", "rule"]
    columns: tuple[Column, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Catalogued(Reply):
    """The relations and rules there are, and the last complete time."""

    kind: ClassVar = "catalogued"
    relations: tuple[Relation, ...]
    time: int | None = None


@dataclass(frozen=True, slots=True)
class Error:
    """A request failed and changed nothing; without an id, the message had none that could be read."""

    kind: ClassVar = "error"
    failure: Failure
    id: Count | None = None


# Pushed


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes of an answer, consolidated. With `more`, further ones of the same step follow: apply them together.

    After one without `more`, the answer is complete and exact at all times below `upto`. `failed` says why the answer
    has no value there; it heals with a later message.
    """

    kind: ClassVar = "changes"
    interest: Count
    upto: int
    rows: Rows
    times: tuple[int, ...]
    diffs: tuple[int, ...]
    more: bool = False
    failed: Failure | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """No more will come of an interest: its inputs are closed, or the reason given."""

    kind: ClassVar = "ended"
    interest: Count
    reason: Failure | None = None


AnyRequest = (
    Hello | Ping | CreateRelation | CreateAttribute | Transact | Register | Unregister | Interest | AddArguments
    | RemoveArguments | Uninterest | Take | Query | Explain | Catalog | Observe | Advance | CloseInput | Shutdown | Ack
)  # fmt: skip
AnyReply = Welcome | Done | Registered | Interested | Table | Explained | Catalogued | Error | Changes | Ended
Message = AnyRequest | AnyReply

REQUESTS: Final[tuple[type[AnyRequest], ...]] = (
    Hello, Ping, CreateRelation, CreateAttribute, Transact, Register, Unregister, Interest, AddArguments,
    RemoveArguments, Uninterest, Take, Query, Explain, Catalog, Observe, Advance, CloseInput, Shutdown, Ack,
)  # fmt: skip
REPLIES: Final[tuple[type[AnyReply], ...]] = (
    Welcome, Done, Registered, Interested, Table, Explained, Catalogued, Error,
)  # fmt: skip
PUSHED: Final[tuple[type[AnyReply], ...]] = (Changes, Ended)

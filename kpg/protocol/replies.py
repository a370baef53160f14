"""What a server says: replies, each with the id of its request, and what comes by itself (`changes`, `ended`).

An answer may be several `rows`, all but the last with `more`; `error` is a reply to anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from kpg.protocol.parts import Column, Failure, Relation
from kpg.protocol.strict_decoder import Count, Name, Rows


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


AnyReply = Welcome | Done | Registered | Interested | Table | Explained | Catalogued | Error | Changes | Ended
REPLIES: Final[tuple[type[AnyReply], ...]] = (
    Welcome, Done, Registered, Interested, Table, Explained, Catalogued, Error,
)  # fmt: skip
PUSHED: Final[tuple[type[AnyReply], ...]] = (Changes, Ended)

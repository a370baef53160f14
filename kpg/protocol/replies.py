"""The messages of a server: replies, each with the id of its request, and pushed messages (`changes`, `ended`).

An answer may be several `rows`, all but the last with `more`. `error` can answer any request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from kpg.protocol.definitions import MessageKinds, message
from kpg.protocol.parts import ColumnSpec, FailureSpec, RelationSpec
from kpg.protocol.strict_decoder import Count, Name, Rows

REPLIES: Final = MessageKinds["Reply | ErrorReply"]()
PUSHED: Final = MessageKinds["ChangesMessage | EndedMessage"]()


@dataclass(frozen=True, slots=True)
class Reply:
    """The server's answer to the request with this id."""

    kind: ClassVar[str]
    id: Count


@message("welcome", REPLIES)
class WelcomeReply(Reply):
    """The answer to `hello`: version and role, the number of the session, and its limits."""

    version: Count
    server: str
    role: Literal["admin", "user"]
    session: Count
    limits: dict[str, float]


@message("done", REPLIES)
class DoneReply(Reply):
    """The request is done; `time` is the last complete time, or that of the transaction."""

    time: int | None = None


@message("registered", REPLIES)
class RegisteredReply(Reply):
    """The names of the rules that are registered now."""

    names: tuple[Name, ...]


@message("interested", REPLIES)
class InterestedReply(Reply):
    """The number of the interest, and the columns of its rows. `resumed`: it continues one that lost its connection."""

    interest: Count
    name: Name
    columns: tuple[ColumnSpec, ...]
    resumed: bool = False


@message("rows", REPLIES)
class RowsReply(Reply):
    """Rows of an answer. With `more`, further rows follow under the same id; `cut` says that a limit ended it."""

    columns: tuple[ColumnSpec, ...]
    rows: Rows
    time: int | None = None
    more: bool = False
    cut: bool = False
    tag: str | None = None  # of an SQL statement: what was done, as `INSERT 0 1`
    in_transaction: bool = False  # whether SQL has left a transaction open


@message("explained", REPLIES)
class ExplainedReply(Reply):
    """A text for people."""

    text: str


@message("catalogued", REPLIES)
class CatalogReply(Reply):
    """The relations and rules of the server, and the last complete time."""

    relations: tuple[RelationSpec, ...]
    time: int | None = None


@message("error", REPLIES)
class ErrorReply:
    """The request failed and changed nothing. Without an id, the message had none that could be read."""

    kind: ClassVar[str]
    failure: FailureSpec
    id: Count | None = None


@message("changes", PUSHED)
class ChangesMessage:
    """Changes of an answer, consolidated. With `more`, further ones of the same step follow: apply them together.

    After one without `more`, the answer is complete and exact at all times below `upto`. `failed` says why the answer
    has no value there; a later message may give it one again. `step` numbers the steps of an interest from 1. With
    `reset` the rows are the whole answer, and those before it are void.
    """

    kind: ClassVar[str]
    interest: Count
    upto: int
    rows: Rows
    times: tuple[int, ...]
    diffs: tuple[int, ...]
    more: bool = False
    failed: FailureSpec | None = None
    step: Count = 0
    reset: bool = False


@message("ended", PUSHED)
class EndedMessage:
    """The interest has ended: its inputs are closed, or the reason is given."""

    kind: ClassVar[str]
    interest: Count
    reason: FailureSpec | None = None


AnyReply = Reply | ErrorReply | ChangesMessage | EndedMessage

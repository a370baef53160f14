"""The requests of Spark tasks and planners to the driver, and the results that tasks leave.

A request is a frozen dataclass with a literal name on the wire, decoded strictly (`kpg.protocol`). The driver answers
on one connection for each client; `kpg.spark.driver_service` has the handlers. No rows pass through the driver.
"""

from __future__ import annotations

from typing import ClassVar, Final, TypeVar

from kpg.cluster.rank_commands.command_kinds import StagingKey
from kpg.protocol.definitions import MessageKinds, TypedRequest, message, part
from kpg.protocol.parts import FailureSpec
from kpg.protocol.strict_decoder import Int64, TrustedJson

Result = TypeVar("Result", covariant=True)

DRIVER_REQUESTS: Final = MessageKinds["DriverRequest[object]"](python_only=True)
TASK_RESULTS: Final = MessageKinds["StagedAttempt | FailedAttempt"](python_only=True)


class DriverRequest(TypedRequest[Result]):
    """A request to the driver."""

    __slots__ = ()


# The results of tasks


@message("staged", TASK_RESULTS)
class StagedAttempt:
    """The rows that one attempt of a task has staged with the ranks."""

    kind: ClassVar[str]
    key: StagingKey
    rows: int
    generation: int  # of the workers that have the rows


@message("failed", TASK_RESULTS)
class FailedAttempt:
    """The error of an attempt with refused rows."""

    kind: ClassVar[str]
    failure: FailureSpec


# Placement


@part("RelationDescription")
class RelationDescription:
    """A relation or answer, and where its rows are."""

    writable: bool
    schema: TrustedJson
    key: tuple[str, ...]
    placed: tuple[str, ...]  # the columns that are hashed to choose the rank of a row; none if one rank has all rows
    ranks: tuple[tuple[str, int], ...]  # the address of each rank
    generation: int
    epoch: Int64


@message("describe", DRIVER_REQUESTS)
class DescribeRelationRequest(DriverRequest[RelationDescription]):
    """Describe a relation or answer."""

    name: str


# Writing


@message("publish", DRIVER_REQUESTS)
class PublishAttemptsRequest(DriverRequest[Int64]):
    """Make staged attempts one transaction; the result is its epoch. A batch applied before changes nothing."""

    relation: str
    attempts: tuple[StagedAttempt, ...]
    prefix: StagingKey  # of the keys of all attempts at this batch
    query: str | None = None  # the stream that the batch belongs to
    batch: int = 0
    replacing: bool = False  # rows replace those with the same key
    shared: bool = False  # other streams may write the relation too
    late: bool = False  # earlier batches may be missing


@message("discard", DRIVER_REQUESTS)
class DiscardStagedRequest(DriverRequest[None]):
    """Drop staged rows by the prefix of their keys; if `final`, rows that arrive later as well."""

    prefix: StagingKey
    final: bool = True


# Reading


@part("HeldHistory")
class HeldHistory:
    """The time from which history is kept, and the open epoch."""

    since: Int64
    epoch: Int64


@message("hold", DRIVER_REQUESTS)
class HoldHistoryRequest(DriverRequest[HeldHistory]):
    """Keep the history of a relation or answer from a time on, or as far back as can be read."""

    reader: str
    name: str
    at: Int64 | None = None
    seconds: float | None = None  # a lease: the hold ends after this time
    lasting: bool = False  # the history is kept on disk too
    bound: bool = False  # the hold ends with the connection


@message("release", DRIVER_REQUESTS)
class ReleaseHistoryRequest(DriverRequest[None]):
    """End a hold."""

    reader: str


@message("pace", DRIVER_REQUESTS)
class ReadEndRequest(DriverRequest[Int64]):
    """Return the time up to which a reader finds at most `rows` updates from `start` on, but at least one time."""

    reader: str
    start: Int64
    rows: int | None

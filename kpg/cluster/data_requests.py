"""The requests of data connections: clients stage rows with a rank and read its shard; they cannot issue commands.

A Spark task has a data connection to every rank, so that its rows go straight to the rank that owns them. Rows travel
as blocks beside a request or its reply (`kpg.cluster.request_frames`); `kpg.cluster.data_service` handles the requests.
"""

from __future__ import annotations

from typing import Final, TypeVar

from kpg.cluster.rank_commands.command_kinds import StagingKey
from kpg.protocol.definitions import MessageKinds, TypedRequest, message
from kpg.protocol.strict_decoder import Int64

Result = TypeVar("Result", covariant=True)

DATA_REQUESTS: Final = MessageKinds["DataRequest[object]"](python_only=True)


class DataRequest(TypedRequest[Result]):
    """A request to one rank over a data connection."""

    __slots__ = ()


@message("stage", DATA_REQUESTS)
class StageRequest(DataRequest[None]):
    """Keep the rows of the blocks for an input, under a key, until the coordinator publishes or drops them."""

    name: str
    key: StagingKey


@message("shard", DATA_REQUESTS)
class ShardRequest(DataRequest[None]):
    """Send this rank's rows of an output or relation as of a time: all, or those with the keys of the block."""

    name: str
    as_of: Int64 | None
    keys: tuple[str, ...] = ()  # the columns of the block
    hold: str | None = None  # the reader that holds the history


@message("updates", DATA_REQUESTS)
class UpdatesRequest(DataRequest[None]):
    """Send this rank's updates of an output or relation at times in [start, end); a hold must keep them."""

    name: str
    hold: str
    start: Int64
    end: Int64

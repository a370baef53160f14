"""The errors that say why a connection or an interest ended."""

from __future__ import annotations

import ssl

from kpg.client.change_feed import ChangeFeed
from kpg.errors import Closed, KpgError, TimeNotReached, Unreachable
from kpg.protocol.error_messages import error_of
from kpg.protocol.parts import FailureSpec

FINAL_STATUSES = frozenset({400, 401, 403, 404, 426})  # of HTTP, instead of a handshake
FINAL_CODES = frozenset({1002, 1003, 1007, 1008, 1009})  # of WebSocket: the same would happen again

HINTS = {  # by code
    1009: "Send smaller messages, or raise the limit: kpg serve --max-message-bytes N.",
    1013: "Connect again later, or raise the limit: kpg serve --max-sessions N.",
}


class ReplyLost(Unreachable):
    """The connection was lost while a request waited for its reply."""


class Refused(Unreachable):
    """The server closed or refused the connection, and would do the same again."""


def is_final(error: BaseException) -> bool:
    """Return whether a server that closed the connection, or refused it, would do the same again."""
    code = getattr(getattr(error, "rcvd", None), "code", None)
    status = getattr(getattr(error, "response", None), "status_code", None)
    return isinstance(error, ssl.SSLError) or code in FINAL_CODES or status in FINAL_STATUSES


def no_change_in_time() -> TimeNotReached:
    """Return the error of a wait that is over."""
    return TimeNotReached("no change came in time", hint="Wait longer, or without a timeout.")


def transaction_lost() -> Unreachable:
    """Return the error of a transaction of SQL that was open when its connection was lost."""
    return Unreachable(
        "the connection was lost, and the server has rolled the transaction back", hint="Begin it again."
    )


def unreachable(url: str, error: BaseException) -> Unreachable:
    """Return the error of a connection that cannot be made, or has ended."""
    received = getattr(error, "rcvd", None)
    reason = f"It said: {received.reason} ({received.code})." if received is not None and received.reason else None
    if isinstance(error, ssl.SSLCertVerificationError):
        hint = "Give authorities=, the certificate that signed the server's."
    elif isinstance(error, ConnectionRefusedError):
        hint = "Check that kpg serve is running there."
    elif received is not None and received.code in HINTS:
        hint = HINTS[received.code]
    else:
        hint = "Check the server and the network, then connect again."
    kind = Refused if is_final(error) else Unreachable
    return kind(f"cannot reach {url}", detail=reason or str(error) or type(error).__name__, hint=hint)


def ended(feed: ChangeFeed) -> KpgError:
    """Return the error of an interest that has ended."""
    if isinstance(feed.ended, FailureSpec):
        return error_of(feed.ended)
    return Closed(f"the interest in {feed.name} has ended")

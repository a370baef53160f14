"""Why a connection or an interest ended, as an error."""

from __future__ import annotations

import ssl

from kpg.client.change_feed import Feed
from kpg.errors import Closed, KpgError, Unreachable
from kpg.protocol.error_messages import error_of
from kpg.protocol.parts import FailureSpec


def unreachable(url: str, error: BaseException) -> Unreachable:
    """A connection that cannot be made, or has ended."""
    received = getattr(error, "rcvd", None)
    said = f"It said: {received.reason} ({received.code})." if received is not None and received.reason else None
    if isinstance(error, ssl.SSLCertVerificationError):
        hint = "Give authorities=, the certificate that signed the server's."
    elif isinstance(error, ConnectionRefusedError):
        hint = "Is kpg serve running there?"
    else:
        hint = "Connect again; what was followed is then followed anew."
    return Unreachable(f"cannot reach {url}", detail=said or str(error) or type(error).__name__, hint=hint)


def ended(feed: Feed) -> KpgError:
    """An interest that is over."""
    if isinstance(feed.ended, FailureSpec):
        return error_of(feed.ended)
    return Closed(f"the interest in {feed.name} has ended")

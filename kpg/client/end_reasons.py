"""The errors that say why a connection or an interest ended."""

from __future__ import annotations

import ssl

from kpg.client.change_feed import ChangeFeed
from kpg.errors import Closed, KpgError, Unreachable
from kpg.protocol.error_messages import error_of
from kpg.protocol.parts import FailureSpec


def unreachable(url: str, error: BaseException) -> Unreachable:
    """Return the error of a connection that cannot be made, or has ended."""
    received = getattr(error, "rcvd", None)
    reason = f"It said: {received.reason} ({received.code})." if received is not None and received.reason else None
    if isinstance(error, ssl.SSLCertVerificationError):
        hint = "Give authorities=, the certificate that signed the server's."
    elif isinstance(error, ConnectionRefusedError):
        hint = "Check that kpg serve is running there."
    else:
        hint = "Connect again, and ask for your interests again."
    return Unreachable(f"cannot reach {url}", detail=reason or str(error) or type(error).__name__, hint=hint)


def ended(feed: ChangeFeed) -> KpgError:
    """Return the error of an interest that has ended."""
    if isinstance(feed.ended, FailureSpec):
        return error_of(feed.ended)
    return Closed(f"the interest in {feed.name} has ended")

"""The interests that the hub serves: which client each belongs to, and how one that was lost is found again.

    connected  --connection lost-->  lost  --interest with the same key-->  connected
                                     lost  --hold_seconds or hold_bytes-->  dropped

An interest with a key survives the loss of its connection. While it is lost, the engine takes no changes for it: they
are consolidated in the interest, as for a client that does not read. Only the holder of the same rights can continue
it. The key is a secret of the client; the server keeps its digest. Used on the event loop's thread only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kpg.protocol.replies import InterestedReply
from kpg.protocol.requests import InterestRequest
from kpg.server.change_payload import ChangePayload
from kpg.server.step_history import HeldBytes, NumberedStep, StepHistory
from kpg.server.tokens import TokenHolder, digest
from kpg.service import Interest

if TYPE_CHECKING:
    from kpg.server.client_connection import ClientConnection

LOST_OWNER: Final = -1  # the owner of interests that have lost their connection


@dataclass(slots=True, eq=False)
class ServedInterest:
    """One interest, its client if it is connected, and the steps that the client may not have received."""

    interest: Interest
    reply: InterestedReply
    client: ClientConnection | None
    holder: TokenHolder
    history: StepHistory
    key: bytes | None = None
    latest_session: int = 0  # of those that have continued it
    begins_with_reset: bool = False  # its client has the rows of an interest that the server no longer holds

    def append(self, payload: ChangePayload, now: float) -> NumberedStep:
        """Number the next step and keep it."""
        return self.history.append(payload, now)

    def is_reset(self, step: NumberedStep) -> bool:
        """Whether a step voids everything that the client has received before."""
        return self.begins_with_reset and step.number == 1


@dataclass(slots=True)
class ServedInterests:
    """All interests by number, and those with a key by its digest."""

    by_number: dict[int, ServedInterest] = field(default_factory=dict)
    by_key: dict[bytes, ServedInterest] = field(default_factory=dict)

    def add(
        self,
        interest: Interest,
        request: InterestRequest,
        reply: InterestedReply,
        client: ClientConnection,
        hold_seconds: float,
    ) -> ServedInterest:
        """Add a new interest of a client. Without a key its steps are not kept."""
        key = None if request.key is None or request.sink is not None else digest(request.key)
        held = client.held if key is not None else HeldBytes(0)
        history = StepHistory(held, hold_seconds if request.credit is None else None)
        holder = client.session.holder
        served = ServedInterest(interest, reply, client, holder, history, key, client.session.number)
        served.begins_with_reset = key is not None and request.step > 0
        self.by_number[interest.id] = served
        if key is not None:
            self.by_key[key] = served
        return served

    def find(self, request: InterestRequest, holder: TokenHolder) -> ServedInterest | None:
        """Return the interest that a request continues; None if there is none."""
        served = None if request.key is None else self.by_key.get(digest(request.key))
        if served is None or served.holder != holder or served.interest.name != request.name:
            return None
        return served

    def remove(self, number: int) -> ServedInterest | None:
        """Remove an interest that has ended, and return it."""
        served = self.by_number.pop(number, None)
        if served is not None:
            served.history.clear()
            if served.key is not None and self.by_key.get(served.key) is served:
                del self.by_key[served.key]
        return served

"""Sessions that have lost their connection: their interests wait for the client, within bounds of time and memory.

    hold(client)        keep the interests of a lost session that have a key
    release(interest)   its client is back
    drop_oldest()       end the interests of the session that was lost first

A session is dropped after `hold_seconds`, or when its steps and unread changes take more than `hold_bytes` together.
Used on the event loop's thread only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from kpg.errors import Closed
from kpg.server.engine_thread import EngineThread
from kpg.server.served_interests import LOST_OWNER, ServedInterest, ServedInterests
from kpg.server.session_limits import SessionLimits
from kpg.server.step_history import HeldBytes
from kpg.service import Service

CHECK_SECONDS: Final = 1.0  # between two measurements of the unread changes of lost sessions


@dataclass(slots=True, eq=False)
class LostSession:
    """The interests of one session that has lost its connection, and when they end."""

    interests: list[ServedInterest]
    held: HeldBytes
    deadline: float


class LostSessions:
    """All sessions that have lost their connection, in the order in which they did."""

    def __init__(
        self, engine: EngineThread, served: ServedInterests, limits: SessionLimits, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._engine = engine
        self._served = served
        self._limits = limits
        self._loop = loop
        self._sessions: list[LostSession] = []
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._sessions)

    def hold(self, interests: Sequence[ServedInterest], held: HeldBytes) -> None:
        """Keep interests until their client is back."""

        def lose(service: Service) -> None:
            for served in interests:
                self._engine.pause(served.interest.id)
                service.change_owner(served.interest, LOST_OWNER)

        for served in interests:
            served.client = None
        if interests:
            self._engine.run(lose)
            deadline = self._loop.time() + self._limits.hold_seconds
            self._sessions.append(LostSession(list(interests), held, deadline))
            self._schedule()

    def release(self, served: ServedInterest) -> None:
        """Forget an interest that is connected again, or has ended."""
        for session in self._sessions:
            if served in session.interests:
                session.interests.remove(served)
        self._sessions = [session for session in self._sessions if session.interests]

    def drop_oldest(self) -> None:
        """End the interests of the session that was lost first."""
        self._drop(self._sessions[0])

    def _drop(self, session: LostSession) -> None:
        if session in self._sessions:
            self._sessions.remove(session)
            self.end(session.interests)

    def end(self, interests: Sequence[ServedInterest]) -> None:
        """End interests, here and in the engine."""

        def drop(service: Service) -> None:
            for served in interests:
                self._engine.forget(served.interest.id)
                service.uninterest(served.interest)

        for served in interests:
            self._served.remove(served.interest.id)
        with suppress(Closed):
            self._engine.run(drop)

    # Bounds

    def _schedule(self) -> None:
        if self._timer is None and self._sessions:
            wait = self._sessions[0].deadline - self._loop.time()
            self._timer = self._loop.call_later(max(0.0, min(CHECK_SECONDS, wait)), self._check)

    def _check(self) -> None:
        """Drop the sessions whose time is over, and measure the others."""
        self._timer = None
        for session in tuple(self._sessions):
            if session.deadline <= self._loop.time():
                self._drop(session)
            else:
                with suppress(Closed):
                    self._measure(session)
        self._schedule()

    def _measure(self, session: LostSession) -> None:
        """Drop a session if its steps and its unread changes are too large."""
        interests = list(session.interests)
        unread = self._engine.run(lambda service: sum(served.interest.unread_bytes for served in interests))

        def compare() -> None:
            if unread.exception() is None and session.held.count + unread.result() > session.held.limit:
                self._drop(session)

        unread.add_done_callback(
            lambda done: None if self._loop.is_closed() else self._loop.call_soon_threadsafe(compare)
        )

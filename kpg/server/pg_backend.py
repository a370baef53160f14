"""The server's side of PostgreSQL's protocol: sessions, limits and secrets for `kpg.pgwire`, on the engine's thread.

A connection counts as a session like any other, and its statements run with the rights of its token or user. Users come
from the server's tokens (any user name, with a token as the password) or from a user file.
"""

from __future__ import annotations

import asyncio
import hmac
import itertools
import logging
import secrets
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from kpg.errors import Closed, ResourceError
from kpg.pgwire.scram_exchange import ITERATIONS, ScramSecret
from kpg.server.engine_thread import FETCH
from kpg.server.hub import Hub
from kpg.server.pg_users import PgUsers
from kpg.server.server_log import log
from kpg.server.session_limits import too_many_sessions
from kpg.server.tokens import TokenHolder
from kpg.service import Service
from kpg.sql.sql_states import QUERY_CANCELED, with_sqlstate

Result = TypeVar("Result")
TOO_MANY_CONNECTIONS: Final = "53300"


class PgBackend:
    """Runs SQL for connections of PostgreSQL's protocol."""

    def __init__(self, hub: Hub, users: PgUsers | None) -> None:
        limits = hub.limits
        self.message_bytes = limits.message_bytes
        self.result_rows = limits.rows
        self.waiting_bytes = limits.waiting_bytes
        self.copy_bytes = limits.copy_bytes
        self.greeting_seconds = limits.greeting_seconds
        self._hub = hub
        self._users = users
        self._numbers = itertools.count(1)  # of calls, for the log
        self._unknown_users = secrets.token_bytes(32)  # makes salts of users that do not exist

    def candidates(self, user: str) -> list[tuple[ScramSecret, Any]]:
        """Return the secrets that a user may prove to know; one that nobody knows if there is no such user."""
        if self._users is not None:
            secret = self._users.find(user)
            return [secret] if secret is not None else [self._decoy(user)]
        return list(self._hub.tokens.secrets)

    def _decoy(self, user: str) -> tuple[ScramSecret, None]:
        """Return a secret for an unknown user: always the same salt, as if the user existed."""
        data = hmac.digest(self._unknown_users, user.encode("utf-8", "replace"), "sha256")
        return ScramSecret(data[:16], ITERATIONS, secrets.token_bytes(32), secrets.token_bytes(32)), None

    def open_session(self, holder: TokenHolder | None) -> int:
        """Count a new session."""
        if self._hub.session_count >= self._hub.limits.sessions:
            self._hub.metrics.add("kpg_refused_total", reason="sessions")
            error = too_many_sessions(self._hub.limits)
            what = f"sorry, too many clients already: {error.what}"
            raise with_sqlstate(TOO_MANY_CONNECTIONS, ResourceError(what, detail=error.detail, hint=error.hint))
        return self._hub.open_sql_session(holder)

    def close_session(self, number: int) -> None:
        """Drop everything of a session."""
        self._hub.close_sql_session(number)

    @property
    def is_ending(self) -> bool:
        """Whether the server finishes the statements that run, and accepts no others."""
        return self._hub.is_ending

    async def run(
        self, number: int, holder: TokenHolder | None, text: str, work: Callable[[Service], Result]
    ) -> Result:
        """Run a function of the service for a session."""
        began = time.perf_counter()
        outcome = "ok"
        try:
            with self._hub.running.during(number, "pg", text):
                return await asyncio.wrap_future(self._hub.engine.run(acting(holder, work), number))
        except Exception as error:
            outcome = type(error).__name__
            raise
        finally:
            seconds = time.perf_counter() - began
            self._hub.metrics.add_request("pg", outcome, seconds)
            log(
                logging.DEBUG if outcome == "ok" else logging.INFO, "request",
                request=f"{number}-{next(self._numbers)}", type="pg", outcome=outcome, seconds=round(seconds, 6),
            )  # fmt: skip

    async def run_after_epoch(
        self,
        number: int,
        holder: TokenHolder | None,
        text: str,
        epoch: int,
        timeout_seconds: float,
        work: Callable[[Service], Result],
    ) -> Result:
        """Run a function when an epoch is complete."""
        future = self._hub.engine.run_as_of(epoch, timeout_seconds, acting(holder, work), number, FETCH)
        with self._hub.running.during(number, "pg", text):
            return await asyncio.wrap_future(future)

    def cancel(self, number: int) -> None:
        """Cancel what a session runs now."""
        error = with_sqlstate(QUERY_CANCELED, Closed("canceling statement due to user request"))
        self._hub.engine.run(lambda service: self._hub.engine.cancel(number, error))


def acting(holder: TokenHolder | None, work: Callable[[Service], Result]) -> Callable[[Service], Result]:
    """Return a function that runs with the rights of a holder."""

    def run(service: Service) -> Result:
        tenant, user = (None, None) if holder is None else (holder.tenant, holder.user)
        with service.grants.acting_as(tenant), service.planner.serving_user(user):
            return work(service)

    return run

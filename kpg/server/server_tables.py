"""The tables of `inspect` that the server adds to those of the service: sessions, requests under way, throughput.

The event loop's thread changes what they describe, and the engine's thread reads it: all reads are of copies. They
describe all clients, so they are refused to tenants, as the tables of the service are.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kpg.errors import InputError, NotAuthorised
from kpg.server import throughput_history
from kpg.service import inspection

if TYPE_CHECKING:
    from kpg.server.hub import Hub

MAX_TEXT_CHARACTERS: Final = 500  # of a request in the table
COLUMNS: Final[dict[str, dict[str, str]]] = {
    "sessions": {
        "session": "int64", "protocol": "string", "role": "string?", "tenant": "string?", "queries": "int64",
        "pending": "int64", "waiting_messages": "int64",
    },
    "requests": {"session": "int64", "id": "int64", "type": "string", "text": "string", "seconds": "float64"},
    "throughput": throughput_history.COLUMNS,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RunningRequest:
    """A request that has no reply yet."""

    session: int
    id: int
    kind: str
    text: str
    began: float


class RunningRequests:
    """The requests that the engine has not answered yet."""

    def __init__(self) -> None:
        self._running: dict[int, RunningRequest] = {}
        self._numbers = itertools.count()

    def begin(self, session: int, id_: int, kind: str, text: str = "") -> int:
        """Record a request; return the number by which `end` knows it."""
        number = next(self._numbers)
        self._running[number] = RunningRequest(session, id_, kind, text[:MAX_TEXT_CHARACTERS], time.perf_counter())
        return number

    def end(self, number: int) -> None:
        """Forget a request."""
        self._running.pop(number, None)

    @contextmanager
    def during(self, session: int, kind: str, text: str) -> Iterator[None]:
        """Record a request for the time of a block."""
        number = self.begin(session, 0, kind, text)
        try:
            yield
        finally:
            self.end(number)

    def __iter__(self) -> Iterator[RunningRequest]:
        return iter(tuple(self._running.values()))


class ServerTables:
    """Computes the tables of one server."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def has(self, table: str) -> bool:
        """Whether the server has a table of this name."""
        return table in COLUMNS

    def table(self, table: str, name: str | None, tenant: str | None) -> pa.Table:
        """Return a table."""
        if tenant is not None:
            raise NotAuthorised(f"tenant {tenant} may not inspect {table}", hint="Use a token without a tenant.")
        if name is not None:
            raise InputError(f"the table {table} takes no name")
        rows: Callable[[], Iterable[tuple[Any, ...]]] = getattr(self, f"_{table}")
        return inspection.as_table(COLUMNS[table], rows())

    def _sessions(self) -> Iterator[tuple[Any, ...]]:
        for number, client in tuple(self._hub.clients.items()):
            session = client.session
            tenant, pending = session.holder.tenant, len(session.pending)
            yield number, "kpg", session.role, tenant, len(session.flows), pending, len(client.outbox)
        running = Counter(request.session for request in self._hub.running)
        for number, holder in tuple(self._hub.sql_sessions.items()):
            yield number, "postgresql", holder.role, holder.tenant, 0, running[number], 0

    def _requests(self) -> Iterator[tuple[Any, ...]]:
        now = time.perf_counter()
        for request in self._hub.running:
            if request.kind != "inspect":
                yield request.session, request.id, request.kind, request.text, now - request.began

    def _throughput(self) -> Iterable[tuple[Any, ...]]:
        return self._hub.metrics.history.rows()

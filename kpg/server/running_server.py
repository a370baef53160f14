"""Run a server: open the service and the port, and close both in order.

serve(settings, report)                   until SIGTERM, SIGINT or a shutdown request; `report` receives status lines
with RunningServer(settings) as server:   the same on a thread, for tests and notebooks
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from kpg.api.contracts import Database
from kpg.api.exit_order import end_at_exit
from kpg.api.free_memory import default_limit
from kpg.columns.full_collections import collect_when_grown
from kpg.errors import InputError
from kpg.extras import require
from kpg.kernels.warm import use_cached_code
from kpg.opening import OpenOptions
from kpg.opening import open as open_db
from kpg.pgwire.pg_listener import PgListener
from kpg.query.functor_modules import load_functors
from kpg.server.hub import Hub
from kpg.server.listener import ListenAddress, Listener
from kpg.server.pg_backend import PgBackend
from kpg.server.pg_users import read_users
from kpg.server.server_log import LogSettings, begin_log, log
from kpg.server.session_limits import SessionLimits
from kpg.server.tokens import Tokens, generate_token, read_tokens, token_from_environment
from kpg.service import Limits, Service

Report = Callable[[str], object]
MAX_ROUNDS = 1_000  # of one recursion; one that diverges takes about two seconds for them
MAX_UNREAD_ROWS = 10_000  # unread changes of an interest above which they are consolidated
MAX_SNAPSHOT_SECONDS = 60.0  # without a read: others' memory grows with what it pins
MAX_ANSWER_RULES = 500  # that one answer is computed by: other clients wait while its dataflow is built


def default_limits() -> Limits:
    """Return the limits of the service in a server."""
    return Limits(
        rounds=MAX_ROUNDS,
        waiting_rows=MAX_UNREAD_ROWS,
        answer_rules=MAX_ANSWER_RULES,
        snapshot_seconds=MAX_SNAPSHOT_SECONDS,
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a server."""

    directory: Path | None = None  # None: a db in memory
    address: ListenAddress = field(default_factory=ListenAddress)
    tokens: Tokens | None = None  # None: those of the file, or of the environment, or a new one
    token_file: Path | None = None
    open_to_all: bool = False  # without any token; every client is admin
    pg_port: int | None = None  # of PostgreSQL's protocol; None: it is not served
    pg_users: Path | None = None  # its user file; None: the password is a token
    session_limits: SessionLimits = field(default_factory=SessionLimits)
    limits: Limits = field(default_factory=default_limits)
    sinks: Path | None = None  # the directory that clients' sinks write to; None disables them
    functors: Path | None = None  # the Python module with the functions of user-defined functors
    history: int | None = 0
    max_lag: int | None = None  # epochs that an answer may lag behind
    workers: int = 1  # processes that share the work, or task slots of Spark
    spark: str | None = None  # the master of a Spark session; None: workers are processes of this machine
    memory: int | None = field(default_factory=default_limit)  # bytes of each worker
    rounds: int = MAX_ROUNDS
    log: LogSettings = field(default_factory=LogSettings)
    shutdown_seconds: float = 1.0  # for requests under way

    def open_service(self) -> Service:
        """Open the db and the service; called on the engine's thread, which owns them."""
        functors = {} if self.functors is None else load_functors(self.functors)  # before workers get our import path
        db = self._open_db()
        return Service(db, limits=self.limits, sinks=self.sinks, functors=functors, wait=db.wait_for_future)

    def _open_db(self) -> Database:
        options: OpenOptions = {
            "history": self.history,
            "memory_limit": self.memory,
            "max_rounds": self.rounds,
            "max_lag": self.max_lag,
        }
        if self.spark is None:
            return open_db(self.directory, workers=self.workers, **options)
        require("pyspark", "kpg serve --spark")
        from kpg.spark.spark_session import session_of

        return open_db(self.directory, spark=session_of(self.spark), workers=self.workers, **options)

    def resolve_tokens(self) -> tuple[Tokens, str | None]:
        """Return the tokens, and a generated one that must be shown to the user."""
        if self.open_to_all:
            if not self.address.is_loopback:
                raise InputError(
                    f"without a token the server listens on this machine alone, not on {self.address.host}",
                    hint="Give --token-file, or leave out --no-token.",
                )
            return Tokens(), None
        if self.tokens is not None:
            return self.tokens, None
        if self.token_file is not None:
            return read_tokens(self.token_file), None
        tokens = token_from_environment()
        if tokens is not None:
            return tokens, None
        token, tokens = generate_token()
        return tokens, token


@dataclass(frozen=True, slots=True)
class OpenServer:
    """A server that accepts clients: its URL, the port of PostgreSQL's protocol, and the event that ends it."""

    url: str
    pg_port: int | None
    hub: Hub
    end: asyncio.Event


async def run(settings: Settings, report: Report, opened: Callable[[OpenServer], object]) -> None:
    """Serve until the event that is passed to `opened` is set."""
    tokens, generated = settings.resolve_tokens()
    loop, end = asyncio.get_running_loop(), asyncio.Event()
    context = settings.address.context()  # raises for a bad certificate before anything is opened
    users = None if settings.pg_users is None else read_users(settings.pg_users)
    hub = await asyncio.to_thread(Hub, settings.open_service, tokens, settings.session_limits, loop, end.set)
    listener = Listener(hub, settings.address)
    pg_listener = PgListener(PgBackend(hub, users), settings.address.host, settings.pg_port or 0, context)
    try:
        url = await listener.open()
        pg_port = None if settings.pg_port is None else await pg_listener.open()
        for line in startup_lines(settings, url, pg_port, generated):
            report(line)
        opened(OpenServer(url, pg_port, hub, end))
        await end.wait()
        report("ending: finishing requests")
        await asyncio.gather(
            hub.finish_requests(settings.shutdown_seconds), end_sql_sessions(pg_listener, settings.shutdown_seconds)
        )
        report("ending: closing connections and the db")
    finally:
        await pg_listener.close()
        await listener.close()
        await asyncio.to_thread(hub.engine.close)
        hub.decoder.shutdown(wait=False)


async def end_sql_sessions(listener: PgListener, timeout_seconds: float) -> None:
    """End the connections of PostgreSQL's protocol, each after the statement that it runs now."""
    unfinished = await listener.drain(timeout_seconds)
    if unfinished:
        log(logging.WARNING, "the server ends before all statements are finished", sessions=unfinished)


def startup_lines(settings: Settings, url: str, pg_port: int | None, generated: str | None) -> list[str]:
    """Return the lines to print when the server is ready."""
    web = url.replace("ws", "http", 1)
    lines = [f"listening on {url}", f"console: {web}/", f"health and metrics: {web}/readyz, {web}/metrics"]
    if pg_port is not None:
        password = "a token" if settings.pg_users is None else "that of the user"
        address = f"host={settings.address.host} port={pg_port} user=kpg dbname=kpg"
        lines.append(f"PostgreSQL's protocol: psql '{address}', with {password} as the password")
    lines.append(
        f"the db is in {settings.directory}" if settings.directory else "the db is in memory and ends with the server"
    )
    if settings.workers > 1 or settings.spark is not None:
        where = "on this machine" if settings.spark is None else f"in Spark ({settings.spark})"
        lines.append(f"{settings.workers} workers {where}")
    if generated is not None:
        lines.append(f"token (shown once): {generated}")
    if settings.open_to_all:
        lines.append("no token is needed: every program on this machine is admin")
    if settings.address.tls_cert is None and not settings.address.is_loopback:
        lines.append("warning: without TLS, others on the network can read tokens and rows")
    return lines


def serve(settings: Settings, report: Report) -> None:
    """Serve until a signal or a shutdown request."""

    def opened(server: OpenServer) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, server.end.set)
        gc.collect()
        gc.freeze()  # a full collection would walk all modules and compiled code: 0.3 s in which every client waits
        collect_when_grown()

    begin_log(settings.log)
    use_cached_code()  # no request should wait while the process changes to machine code
    asyncio.run(run(settings, report, opened))
    gc.freeze()  # or the interpreter would look for garbage among all objects of Numba before it ends


class RunningServer:
    """A server on a background thread."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.url = ""
        self.pg_port: int | None = None
        self.lines: list[str] = []  # the status lines that `kpg serve` prints
        self.hub: Hub
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop
        self._end: asyncio.Event

    def start(self) -> str:
        """Start the server and return its URL."""
        ready: Future[str] = Future()

        def opened(server: OpenServer) -> None:
            self._loop, self.hub, self._end = asyncio.get_running_loop(), server.hub, server.end
            self.pg_port = server.pg_port
            ready.set_result(server.url)

        def work() -> None:
            try:
                asyncio.run(run(self.settings, self.lines.append, opened))
            except BaseException as error:
                if ready.done():
                    raise
                ready.set_exception(error)

        self._thread = threading.Thread(target=work, name="kpg-server", daemon=True)
        self._thread.start()
        self.url = ready.result()
        end_at_exit(self.stop)
        return self.url

    def stop(self, timeout_seconds: float | None = None) -> None:
        """End the server in order, and wait for that; has no effect if it has ended already."""
        if self._thread is not None and self._thread.is_alive():
            try:
                self._loop.call_soon_threadsafe(self._end.set)
            except RuntimeError:  # the loop has just been closed
                pass
            self._thread.join(timeout_seconds)

    def __enter__(self) -> RunningServer:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

"""A server from beginning to end: the service is opened, the port too, and both are closed in good order.

serve(settings, say)            until SIGTERM, SIGINT or a request to shut down; `say` gets lines for people
with Served(settings) as url:   the same on a thread, for tests and notebooks
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from kpg.api.memory import machine_bytes
from kpg.errors import InputError
from kpg.opening import open as open_db
from kpg.server.hub import Hub
from kpg.server.listener import ListenAddress, Listener
from kpg.server.session_limits import SessionLimits
from kpg.server.tokens import Tokens, from_environment, generated, read_tokens
from kpg.service import Limits, Service

Say = Callable[[str], object]
ROUNDS = 10_000  # of one recursion: about ten seconds for one that diverges, in which nobody else is served


def most_memory() -> int | None:
    """Three quarters of what the machine has: one query too many is refused before the system ends the process."""
    found = machine_bytes()
    return None if found is None else found * 3 // 4


@dataclass(frozen=True, slots=True)
class Settings:
    """How to serve."""

    directory: Path | None = None  # in memory if not said
    place: ListenAddress = field(default_factory=ListenAddress)
    tokens: Tokens | None = None  # those of the file, the environment, or a new one if not said
    token_file: Path | None = None
    open_to_all: bool = False  # no token is needed
    allowance: SessionLimits = field(default_factory=SessionLimits)
    limits: Limits = field(default_factory=lambda: Limits(rounds=ROUNDS, waiting_rows=10_000))
    sinks: Path | None = None  # the directory that sinks of clients write to; without one they may not
    history: int | None = 0
    memory: int | None = field(default_factory=lambda: most_memory())  # bytes
    rounds: int = ROUNDS

    def make(self) -> Service:
        """The service, on the thread that will own it."""
        db = open_db(
            self.directory, history=self.history, memory_limit=self.memory, max_rounds=self.rounds
        )  # fmt: skip
        return Service(db, limits=self.limits, sinks=self.sinks)

    def keys(self) -> tuple[Tokens, str | None]:
        """The tokens, and a new one that must be shown."""
        if self.open_to_all:
            if not self.place.is_loopback:
                raise InputError(
                    f"without a token the server listens on this machine alone, not on {self.place.host}",
                    hint="Give --token-file, or leave --no-token out.",
                )
            return Tokens(), None
        if self.tokens is not None:
            return self.tokens, None
        if self.token_file is not None:
            return read_tokens(self.token_file), None
        found = from_environment()
        if found is not None:
            return found, None
        token, made = generated()
        return made, token


async def run(settings: Settings, say: Say, opened: Callable[[str, Hub, asyncio.Event], object]) -> None:
    """Serve until the event is set that `opened` is given."""
    tokens, fresh = settings.keys()
    loop, end = asyncio.get_running_loop(), asyncio.Event()
    settings.place.context()  # a bad certificate is said before anything is opened
    hub = await asyncio.to_thread(Hub, settings.make, tokens, settings.allowance, loop, end.set)
    listener = Listener(hub, settings.place)
    try:
        url = await listener.open()
        for line in greeting(settings, url, fresh):
            say(line)
        opened(url, hub, end)
        await end.wait()
        say("ending: clients are told, the db is closed")
    finally:
        await listener.close()
        await asyncio.to_thread(hub.engine.close)


def greeting(settings: Settings, url: str, fresh: str | None) -> list[str]:
    """What people should know when the server is there."""
    web = url.replace("ws", "http", 1)
    lines = [f"listening on {url}", f"health and metrics: {web}/health, {web}/metrics"]
    lines.append(f"the db is in {settings.directory}" if settings.directory else "the db is in memory: it ends with me")
    if fresh is not None:
        lines.append(f"token (shown once): {fresh}")
    if settings.open_to_all:
        lines.append("no token is needed: every program of this machine is admin")
    if settings.place.tls_cert is None and not settings.place.is_loopback:
        lines.append("warning: without TLS, tokens and rows can be read on the way")
    return lines


def serve(settings: Settings, say: Say) -> None:
    """Serve until told to end."""

    def opened(url: str, hub: Hub, end: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, end.set)

    asyncio.run(run(settings, say, opened))


class RunningServer:
    """A server on a thread of its own."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.url = ""
        self.said: list[str] = []
        self.hub: Hub
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop
        self._end: asyncio.Event

    def start(self) -> str:
        """Begin; the address."""
        ready: Future[str] = Future()

        def opened(url: str, hub: Hub, end: asyncio.Event) -> None:
            self._loop, self.hub, self._end = asyncio.get_running_loop(), hub, end
            ready.set_result(url)

        def work() -> None:
            try:
                asyncio.run(run(self.settings, self.said.append, opened))
            except BaseException as error:
                if ready.done():
                    raise
                ready.set_exception(error)

        self._thread = threading.Thread(target=work, name="kpg-server", daemon=True)
        self._thread.start()
        self.url = ready.result()
        return self.url

    def stop(self) -> None:
        """End in good order; may be repeated, also after the server has ended by itself."""
        if self._thread is not None and self._thread.is_alive():
            try:
                self._loop.call_soon_threadsafe(self._end.set)
            except RuntimeError:  # it has just ended
                pass
            self._thread.join()

    def __enter__(self) -> RunningServer:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

"""A peer in a process of its own, so that it can be stopped when it takes too long.

    with PeerProcess(timeout_seconds) as process:
        process.ask(question, arguments...)      return its answer; raise PeerTimeout after the timeout

A question is a function of a module. The process starts with the first question and answers one after the other; after
a timeout the next question starts a new one. No clock includes the start of the process.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from types import TracebackType
from typing import Any, TypeVar

from kpg.bench.run import PeerAbsent, PeerTimeout

Answer = TypeVar("Answer")
START_TIMEOUT_SECONDS = 120.0  # a new process imports the peer's package, on a busy machine


class PeerProcess:
    """A process that answers questions, each within a timeout."""

    def __init__(self, timeout_seconds: float) -> None:
        self.timeout_seconds = timeout_seconds
        self._running: tuple[SpawnProcess, Connection] | None = None

    def __enter__(self) -> PeerProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def ask(self, question: Callable[..., Answer], *arguments: Any) -> Answer:
        """Call a question in the other process and return its answer; its exceptions are raised here."""
        pipe = self._started()
        try:
            pipe.send((question, arguments))
            if not pipe.poll(self.timeout_seconds):
                raise PeerTimeout(f"more than {self.timeout_seconds:g}")
            succeeded, value = pipe.recv()
        except BaseException as error:
            self.stop()
            if isinstance(error, (EOFError, BrokenPipeError)):
                raise PeerAbsent("its process ended") from error
            raise
        if succeeded:
            answer: Answer = value
            return answer
        raise value

    def _started(self) -> Connection:
        if self._running is None:
            context = multiprocessing.get_context("spawn")
            ours, theirs = context.Pipe()
            process = context.Process(target=answer_questions, args=(theirs,), daemon=True)
            process.start()
            theirs.close()
            self._running = process, ours
            if not ours.poll(START_TIMEOUT_SECONDS) or ours.recv() != "ready":
                self.stop()
                raise PeerAbsent("its process did not start")
        return self._running[1]

    def stop(self) -> None:
        """Kill the process."""
        if self._running is not None:
            process, pipe = self._running
            self._running = None
            process.kill()
            process.join()
            pipe.close()


def answer_questions(pipe: Connection) -> None:
    """Answer questions from a pipe until it is closed: the main function of the process."""
    pipe.send("ready")
    while True:
        try:
            question, arguments = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send((True, question(*arguments)))
        except Exception as error:
            pipe.send((False, error))

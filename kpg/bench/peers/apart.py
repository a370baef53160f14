"""A peer in a process of its own, so that it can be stopped when it takes too long.

    with Apart(patience) as apart:
        apart.ask(question, arguments...)      what it answers; raises TooLong when the patience is over

The question is a function of a module. The process is started with the first question and answers one after the other;
one that was stopped is started anew for the next. Starting it is not on anybody's clock.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from types import TracebackType
from typing import Any, TypeVar

from kpg.bench.run import Absent, TooLong

Answer = TypeVar("Answer")
STARTING = 120.0  # seconds that a new process may take


class Apart:
    """Somebody who answers questions, while there is patience."""

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self._running: tuple[SpawnProcess, Connection] | None = None

    def __enter__(self) -> Apart:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def ask(self, question: Callable[..., Answer], *arguments: Any) -> Answer:
        """What the question answers there; its exceptions are raised here."""
        pipe = self._started()
        try:
            pipe.send((question, arguments))
            if not pipe.poll(self.patience):
                raise TooLong(f"more than {self.patience:g}")
            answered, found = pipe.recv()
        except BaseException as error:
            self.stop()
            if isinstance(error, (EOFError, BrokenPipeError)):
                raise Absent("its process ended") from error
            raise
        if answered:
            answer: Answer = found
            return answer
        raise found

    def _started(self) -> Connection:
        if self._running is None:
            context = multiprocessing.get_context("spawn")
            ours, theirs = context.Pipe()
            process = context.Process(target=answer_questions, args=(theirs,), daemon=True)
            process.start()
            theirs.close()
            self._running = process, ours
            if not ours.poll(STARTING) or ours.recv() != "ready":
                self.stop()
                raise Absent("its process did not start")
        return self._running[1]

    def stop(self) -> None:
        """End the process, whatever it does."""
        if self._running is not None:
            process, pipe = self._running
            self._running = None
            process.kill()
            process.join()
            pipe.close()


def answer_questions(pipe: Connection) -> None:
    """What the process does."""
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

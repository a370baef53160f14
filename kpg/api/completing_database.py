"""A db whose answers complete times one after the other: what dbs of one worker and of several have in common."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from kpg.api.completion import Completion
from kpg.api.contracts import Database


class CompletingDatabase(Database):
    """A db that knows how far its answers are complete."""

    completion: Completion[Any]

    @property
    def answers_lag(self) -> bool:
        return self.completion.requests is not None

    @property
    def has_work(self) -> bool:
        return self.completion.has_work

    def uninterrupted(self) -> AbstractContextManager[None]:
        requests = self.completion.requests
        return nullcontext() if requests is None else requests.uninterrupted()

    def in_turns(self) -> AbstractContextManager[None]:
        requests = self.completion.requests
        return nullcontext() if requests is None else requests.in_turns()

    @property
    def in_request(self) -> bool:
        requests = self.completion.requests
        return requests is not None and requests.in_request

    def start_request(self, function: Callable[[], None]) -> None:
        requests = self.completion.requests
        if requests is None:
            function()
        else:
            requests.start_another(function)

    def including_writes(self) -> AbstractContextManager[None]:
        requests = self.completion.requests
        return nullcontext() if requests is None else requests.including_writes()

    @property
    def used_seconds(self) -> float:
        requests = self.completion.requests
        return super().used_seconds if requests is None else requests.used_seconds

    def pause_request(self) -> None:
        if self.completion.requests is not None:
            self.completion.requests.pause()

    def wait_for_future(self, future: Future[Any]) -> None:
        self.completion.wait_for_future(future)

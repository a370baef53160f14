"""The handlers of typed requests: a table from the class of a request to the method that performs it.

    HANDLERS = HandlerTable[RankGeneration]()

    @HANDLERS.handles(AdvanceCommand)
    def _advance(self, command: AdvanceCommand, blocks: list[Updates]) -> RankReport: ...

A method returns the result that the request's class declares, or an `Answer` if rows go with it. Adding a request takes
its definition and its handler; there is no other list.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from kpg.cluster.request_frames import Answer
from kpg.columns.updates import Updates
from kpg.protocol.definitions import TypedRequest

Owner = TypeVar("Owner")
Result = TypeVar("Result")
Handler = Callable[[Owner, Any, list[Updates]], Result | Answer[Result]]


class HandlerTable(Generic[Owner]):
    """The handlers that an owner has."""

    def __init__(self) -> None:
        self.handlers: dict[type, Handler[Owner, Any]] = {}

    def handles(
        self, request: type[TypedRequest[Result]]
    ) -> Callable[[Handler[Owner, Result]], Handler[Owner, Result]]:
        """Make a method the handler of a request."""

        def register(handler: Handler[Owner, Result]) -> Handler[Owner, Result]:
            assert request not in self.handlers, f"{request.__name__} has two handlers"
            self.handlers[request] = handler
            return handler

        return register

    def __contains__(self, request: type) -> bool:
        return request in self.handlers

    def perform(self, owner: Owner, request: TypedRequest[Any], blocks: list[Updates]) -> Answer[Any]:
        """Perform a request."""
        answer = self.handlers[type(request)](owner, request, blocks)
        return answer if isinstance(answer, Answer) else Answer(answer)

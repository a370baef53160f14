"""Methods that are written once, as procedures, and driven in two ways.

    class ServerMethods:
        ping = asks(calls.ping)

    Connection.ping(self) -> int | None                   blocks
    AsyncConnection.ping(self) -> Awaitable[int | None]   is awaited

The class of the instance decides, also for type checkers: `DrivenMethod` is a descriptor, and its result depends on
whether its owner is a `BlockingDriver` or an `AwaitingDriver`.
"""

from __future__ import annotations

import types
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from kpg.client.conversation import Call
from kpg.client.procedures import Procedure, ask
from kpg.protocol.replies import InterestedReply

if TYPE_CHECKING:
    from kpg.client.async_connection import AsyncSubscription
    from kpg.client.connection import Subscription

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result", covariant=True)
Value = TypeVar("Value")


class BlockingDriver(ABC):
    """Drives procedures by blocking."""

    @abstractmethod
    def drive(self, procedure: Procedure[Value]) -> Value:
        """Perform a procedure and return its result."""


class AwaitingDriver(ABC):
    """Drives procedures by awaiting."""

    @abstractmethod
    async def drive(self, procedure: Procedure[Value]) -> Value:
        """Perform a procedure and return its result."""


class DrivenMethod(Generic[Parameters, Result]):
    """A method with a procedure as its body; calling it drives the procedure."""

    def __init__(self, procedure: Callable[..., Procedure[Any]], documented: Callable[..., Any]) -> None:
        @wraps(documented)
        def method(owner: Any, /, *args: Any, **options: Any) -> Any:
            return owner.drive(procedure(owner, *args, **options))

        self._method = method

    @overload
    def __get__(self, owner: None, kind: type) -> Callable[..., Any]: ...
    @overload
    def __get__(self, owner: BlockingDriver, kind: type) -> Callable[Parameters, Result]: ...
    @overload
    def __get__(self, owner: AwaitingDriver, kind: type) -> Callable[Parameters, Awaitable[Result]]: ...
    def __get__(self, owner: Any, kind: type) -> Any:
        return self._method if owner is None else types.MethodType(self._method, owner)


class InterestMethod(Generic[Parameters]):
    """The method that follows an answer: the kind of subscription depends on the driver."""

    def __init__(self, call: Callable[Parameters, Call[InterestedReply]]) -> None:
        def follow(owner: Any, *args: Any, **options: Any) -> Procedure[Any]:
            reply = yield from ask(owner.conversation, call(*args, **options))
            return owner.subscription(owner.conversation.feeds[reply.interest])

        self._method: DrivenMethod[..., Any] = DrivenMethod(follow, call)

    @overload
    def __get__(self, owner: None, kind: type) -> Callable[..., Any]: ...
    @overload
    def __get__(self, owner: BlockingDriver, kind: type) -> Callable[Parameters, Subscription]: ...
    @overload
    def __get__(self, owner: AwaitingDriver, kind: type) -> Callable[Parameters, Awaitable[AsyncSubscription]]: ...
    def __get__(self, owner: Any, kind: type) -> Any:
        return self._method.__get__(owner, kind)


def asks(call: Callable[Parameters, Call[Value]]) -> DrivenMethod[Parameters, Value]:
    """Make a method of a connection that sends a call's request and returns its result."""

    def procedure(owner: Any, *args: Parameters.args, **options: Parameters.kwargs) -> Procedure[Value]:
        return ask(owner.conversation, call(*args, **options))

    return DrivenMethod(procedure, call)


def driven(
    procedure: Callable[Concatenate[Any, Parameters], Procedure[Value]],
) -> DrivenMethod[Parameters, Value]:
    """Make a method from a procedure."""
    return DrivenMethod(procedure, procedure)

"""The first message of a connection: which kind of peer connects. It is read only after the proof of the secret."""

from __future__ import annotations

from typing import ClassVar, Final

from kpg.protocol.definitions import MessageKinds, message

HELLOS: Final = MessageKinds["Hello"](python_only=True)
BOOTSTRAPS: Final = MessageKinds["RankBootstrap"](python_only=True)


class Hello:
    """The base of all hellos."""

    __slots__ = ()
    kind: ClassVar[str]


@message("rank", HELLOS)
class RankHello(Hello):
    """A rank connects to its coordinator."""

    rank: int
    token: str  # given to it when it was started; an older one belongs to a rank that was replaced
    address: tuple[str, int]  # where its listener is
    version: str
    pid: int


@message("peer", HELLOS)
class PeerHello(Hello):
    """A rank connects to another rank of its generation."""

    rank: int
    generation: int


@message("data", HELLOS)
class DataHello(Hello):
    """A client opens a data connection to a rank."""

    version: str


@message("driver", HELLOS)
class DriverHello(Hello):
    """A planner or task of Spark connects to the driver."""

    version: str


@message("bootstrap", BOOTSTRAPS)
class RankBootstrap:
    """The addresses and secrets that a rank needs to connect; the coordinator passes them to the launcher."""

    kind: ClassVar[str]
    rank: int
    secret: str  # hexadecimal
    coordinator: tuple[str, int]
    interface: str
    token: str
    path: tuple[str, ...] = ()  # directories to import from

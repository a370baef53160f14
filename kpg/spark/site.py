"""Where a db is, as it travels with tasks: the address of its coordinator and the secret.

It goes inside pickled functions and objects, and as a conf key that Spark redacts; never as an
option, which plans show.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kpg.columns.schema import Schema


@dataclass(frozen=True, slots=True)
class Site:
    """Who to ask, and how to prove that one may."""

    host: str
    port: int
    secret: str = field(repr=False)  # hexadecimal

    @property
    def address(self) -> tuple[str, int]:
        """Of the coordinator."""
        return self.host, self.port


@dataclass(frozen=True, slots=True)
class RelationPlacement:
    """A relation or answer, as the coordinator describes it."""

    name: str
    writable: bool
    schema: Schema
    key: tuple[str, ...]
    placed: tuple[str, ...]  # the columns whose hash says which rank has a row
    ranks: tuple[tuple[str, int], ...]
    generation: int
    epoch: int

    @classmethod
    def read(cls, name: str, told: dict[str, Any]) -> RelationPlacement:
        """From what the coordinator said."""
        from kpg.plan.plan_values import read_schema

        return cls(
            name,
            bool(told["writable"]),
            read_schema(told["schema"]),
            tuple(told["key"]),
            tuple(told["placed"]),
            tuple((host, int(port)) for host, port in told["ranks"]),
            int(told["generation"]),
            int(told["epoch"]),
        )

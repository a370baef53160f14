"""The address and secret of a db, as they travel with tasks, and the placement of a relation's rows.

A site travels inside pickled functions and objects, and as a conf key that Spark redacts; never as an option, which
plans show.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kpg.columns.schema import Schema
from kpg.spark.driver_requests import RelationDescription


@dataclass(frozen=True, slots=True)
class Site:
    """The address of a db's coordinator, and the secret of the db."""

    host: str
    port: int
    secret: str = field(repr=False)  # hexadecimal

    @property
    def address(self) -> tuple[str, int]:
        """The address of the coordinator."""
        return self.host, self.port


@dataclass(frozen=True, slots=True)
class RelationPlacement:
    """A relation or answer, and where its rows are."""

    name: str
    writable: bool
    schema: Schema
    key: tuple[str, ...]
    placed: tuple[str, ...]  # the columns that are hashed to choose the rank of a row; none if one rank has all rows
    ranks: tuple[tuple[str, int], ...]
    generation: int
    epoch: int

    @classmethod
    def of(cls, name: str, description: RelationDescription) -> RelationPlacement:
        """Return the placement that the driver describes."""
        from kpg.plan.plan_values import read_schema

        return cls(
            name,
            description.writable,
            read_schema(description.schema),
            description.key,
            description.placed,
            description.ranks,
            description.generation,
            description.epoch,
        )

"""Names that WITH defines: queries that were bound once, and the recursive variables that are being defined."""

from __future__ import annotations

from dataclasses import dataclass, field

from kpg.sql.relational.relations import BoundRelation, RecursiveVariable


@dataclass
class CommonTable:
    """A query of WITH: its relation, or the recursive variable that stands for it while it is being defined.

    `uses` counts references: the recursive term of WITH RECURSIVE may have one.
    """

    names: tuple[str, ...]
    relation: BoundRelation | None = None
    variable: RecursiveVariable | None = None
    refusal: str | None = None  # why a reference is an error here, as PostgreSQL says it
    linear: bool = False  # whether more than one reference is an error
    uses: int = 0


@dataclass
class CommonTables:
    """The names of one WITH, and of those around it. Inner names hide outer ones."""

    parent: CommonTables | None = None
    tables: dict[str, CommonTable] = field(default_factory=dict)

    def find(self, name: str) -> CommonTable | None:
        """Return what a name stands for, None if no WITH defines it."""
        if name in self.tables:
            return self.tables[name]
        return None if self.parent is None else self.parent.find(name)

"""What a service knows of itself, as relations that rules and queries can read.

    sys_rule(name, language, text)         each rule that can be asked for
    sys_reads(reader, read, how)           who reads whom: "reads", "negates", "takes the sum of", ...
    sys_column(relation, place, name, kind)

They are filled when the first text reads one of them, and kept up to date from then on; before that they cost nothing.
They are made of what is registered, so they are not on disk.
"""

from __future__ import annotations

from typing import Any

from kpg.query.ir.rewrites.stratify import dependencies
from kpg.service.catalog import Catalog, Prepared
from kpg.service.relations import Declared
from kpg.service.rules import RuleStore

PREFIX = "sys_"
DECLARED = (
    Declared("sys_rule", (("name", "symbol"), ("language", "symbol"), ("text", "symbol"))),
    Declared("sys_reads", (("reader", "symbol"), ("read", "symbol"), ("how", "symbol"))),
    Declared("sys_column", (("relation", "symbol"), ("place", "number"), ("name", "symbol"), ("kind", "symbol"))),
)
NAMES = frozenset(declared.name for declared in DECLARED)
Rows = dict[str, set[tuple[Any, ...]]]


class Meta:
    """The relations about relations and rules."""

    def __init__(self, catalog: Catalog, rules: RuleStore) -> None:
        self._catalog = catalog
        self._rules = rules
        self._told: Rows | None = None  # what the relations hold, once there are any

    def need(self, names: frozenset[str] | set[str]) -> None:
        """Fill the relations if one of them is read."""
        if self._told is None and names & NAMES:
            for declared in DECLARED:
                self._catalog.add(declared, keep_on_disk=False)
            self._told = {name: set() for name in NAMES}
            self.update()

    def update(self) -> None:
        """Something was registered or declared: tell it."""
        if self._told is None:
            return
        now = self.rows()
        changes: list[Prepared] = []
        for name in sorted(NAMES):
            for rows, diff in ((now[name] - self._told[name], 1), (self._told[name] - now[name], -1)):
                if rows:
                    changes += self._catalog.rows(name, sorted(rows), diff)
        self._told = now
        if changes:
            self._catalog.transact(changes, None)

    def rows(self) -> Rows:
        """What there is to tell now."""
        found: Rows = {name: set() for name in NAMES}
        for text in self._rules.texts.values():
            found["sys_rule"] |= {(name, text.language, text.source) for name in text.text.names}
        program = self._rules.program(self._rules.by_name, self._catalog.relations())
        found["sys_reads"] |= {(edge.reader, edge.read, edge.how or "reads") for edge in dependencies(program)}
        for relation in {**self._catalog.relations(), **self._rules.relations()}.values():
            for place, column in enumerate(relation.columns):
                found["sys_column"].add((relation.name, place, column.name, column.kind))
        return found

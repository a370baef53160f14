"""System relations: the catalogue of a service as relations that rules and queries read.

    sys_rule(name, language, text)             each rule that clients can ask for
    sys_reads(reader, read, how)               the dependencies: "reads", "negates", "takes the sum of", ...
    sys_column(relation, place, name, kind)    the columns of each relation; `place` is the position, from 0

They are filled when the first text reads one of them, and kept up to date from then on; before that they cost nothing.
They are derived from the registered texts, so they are not stored on disk. Each update describes only the texts and
relations that have changed, in parts: other requests run between two parts. Every row has one source, the text or the
relation that it describes, so a change of one source leaves the rows of all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kpg.query.ir.program import Program
from kpg.query.ir.rewrites.stratify import dependencies
from kpg.service.base_relations import Catalog, EncodedChanges
from kpg.service.relation_declarations import RelationDeclaration
from kpg.service.rules import RegisteredText, RuleStore

if TYPE_CHECKING:
    from kpg.api.contracts import Database

SYSTEM_PREFIX: Final = "sys_"
SYSTEM_RELATIONS: Final = (
    RelationDeclaration("sys_rule", (("name", "symbol"), ("language", "symbol"), ("text", "symbol"))),
    RelationDeclaration("sys_reads", (("reader", "symbol"), ("read", "symbol"), ("how", "symbol"))),
    RelationDeclaration(
        "sys_column", (("relation", "symbol"), ("place", "number"), ("name", "symbol"), ("kind", "symbol"))
    ),
)
SYSTEM_NAMES: Final = frozenset(declaration.name for declaration in SYSTEM_RELATIONS)
ROWS_PER_PART: Final = 300  # that are encoded and transacted between two pauses: a few milliseconds


class SystemRow(NamedTuple):
    """A row of a system relation."""

    relation: str
    values: tuple[Any, ...]


class SystemRelations:
    """Keeps the system relations equal to the catalogue, once a text reads one of them."""

    def __init__(self, db: Database, catalog: Catalog, rules: RuleStore) -> None:
        self._db = db
        self._catalog = catalog
        self._rules = rules
        self._is_required = False
        self._described: dict[int | str, set[SystemRow]] = {}  # by the number of a text, or the name of a relation
        self._changes: list[tuple[SystemRow, int]] = []  # rows and diffs to transact

    def require(self, names: frozenset[str] | set[str]) -> None:
        """Create and fill the system relations if one of them is among `names`; others run meanwhile."""
        if not names & SYSTEM_NAMES:
            return
        if not self._is_required:
            self._is_required = True
            for declaration in SYSTEM_RELATIONS:
                self._catalog.add(declaration, keep_on_disk=False)
            self._rules.changed |= dict.fromkeys(self._rules.texts)
            self._rules.readable.changed |= dict.fromkeys(self._rules.readable.by_name)
            self._catalog.named.changed |= dict.fromkeys(self._catalog.named.by_name)
        while self._update_part():  # also the parts that another request has left
            self._db.pause_request()

    def update(self) -> None:
        """Transact the difference after relations or rules were added or removed; others run between its parts.

        A request that is cancelled at a pause completes it, because what it has defined stays.
        """
        try:
            while self._update_part():
                self._db.pause_request()
        except BaseException:
            while self._update_part():
                pass
            raise

    def _update_part(self) -> bool:
        """Transact a part of the difference; return whether there is more."""
        changed = (self._rules.changed, self._rules.readable.changed, self._catalog.named.changed)
        if not self._is_required:
            for keys in changed:
                keys.clear()
            return False
        while len(self._changes) < ROWS_PER_PART and self._describe_next():
            pass
        part, self._changes = self._changes[:ROWS_PER_PART], self._changes[ROWS_PER_PART:]
        if part:
            try:
                self._catalog.transact(list(self._encode(part)), None)
            except BaseException:
                self._changes[:0] = part  # for the next update
                raise
        return bool(self._changes) or any(changed)

    def _describe_next(self) -> bool:
        """Add the changes of the rows of one changed source; return whether there was one."""
        key: int | str
        rows: set[SystemRow]
        if self._rules.changed:  # in the order of the changes: another text may have the same rows later
            number, _ = self._rules.changed.popitem(last=False)
            key, rows = number, set(rows_of_text(self._rules.texts.get(number)))
        elif changed := self._rules.readable.changed or self._catalog.named.changed:
            name, _ = changed.popitem(last=False)
            key, rows = name, set(self._columns_of(name))
        else:
            return False
        before = self._described.pop(key, set())
        if rows:
            self._described[key] = rows
        self._changes += [(row, -1) for row in sorted(before - rows)]
        self._changes += [(row, 1) for row in sorted(rows - before)]
        return True

    def _columns_of(self, name: str) -> Iterator[SystemRow]:
        text = self._rules.by_name.get(name)
        if text is not None and text.is_temporary:
            return
        relation = self._rules.readable.by_name.get(name) or self._catalog.named.by_name.get(name)
        if relation is not None:
            for index, column in enumerate(relation.columns):
                yield SystemRow("sys_column", (name, index, column.name, column.kind))

    def _encode(self, changes: list[tuple[SystemRow, int]]) -> Iterator[EncodedChanges]:
        net: dict[SystemRow, int] = {}
        for row, diff in changes:
            net[row] = net.get(row, 0) + diff
        for name in sorted(SYSTEM_NAMES):
            for diff in (1, -1):
                rows = [row.values for row, count in net.items() if row.relation == name and count == diff]
                if rows and name == "sys_rule":
                    yield self._encode_rules(rows, diff)
                elif rows:
                    yield from self._catalog.encode_rows(name, rows, diff)

    def _encode_rules(self, rows: list[tuple[Any, ...]], diff: int) -> EncodedChanges:
        """Encode rows of sys_rule, each text once: it may be long, and have many rules."""
        texts = dict.fromkeys(text for _, _, text in rows)
        [encoded] = self._catalog.encode_rows("sys_rule", [(name, language, "") for name, language, _ in rows], diff)
        [sources] = self._catalog.encode_rows("sys_rule", [("", "", text) for text in texts], diff)
        codes = dict(zip(texts, sources.data[-1].tolist(), strict=True))
        encoded.data[-1] = [codes[text] for _, _, text in rows]
        return encoded


def rows_of_text(text: RegisteredText | None) -> Iterator[SystemRow]:
    """Yield the rows that describe the rules of a text, if it is registered."""
    if text is None or text.is_temporary:
        return
    for name in text.text.names:
        yield SystemRow("sys_rule", (name, text.language, text.source))
    program = Program(relations=text.text.relations, rules=text.text.rules, reductions=text.text.reductions)
    for edge in dependencies(program):
        yield SystemRow("sys_reads", (edge.reader, edge.read, edge.blocking or "reads"))

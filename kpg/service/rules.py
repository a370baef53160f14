"""The registered rules of a service, and the system relations that describe them.

    store.add(...)                      keep a checked text; build nothing
    store.program(names, base, cut)     the rules and base relations that some answers need, as one program

The program contains each rule once, in registration order. The same texts registered in the same order therefore give
the same program, so that all workers build the same dataflow. Dependencies are not followed past the relations in
`cut`: an existing answer takes the place of each.

Rules and queries can read the catalogue itself through three system relations:

    sys_rule(name, language, text)             each rule that clients can ask for
    sys_reads(reader, read, how)               the dependencies: "reads", "negates", "takes the sum of", ...
    sys_column(relation, place, name, kind)    the columns of each relation; `place` is the position, from 0

They are filled when the first text reads one of them, and kept up to date from then on; before that they cost nothing.
They are derived from the registered texts, so they are not stored on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kpg.errors import InUse, UndefinedName
from kpg.query.ir.program import Directive, Program, Relation
from kpg.query.ir.rewrites.stratify import dependencies
from kpg.query.ir.verify import atoms_of
from kpg.query.source_text import did_you_mean
from kpg.service.base_relations import Catalog, EncodedChanges
from kpg.service.languages import RuleText
from kpg.service.relation_declarations import RelationDeclaration

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RegisteredText:
    """A rule text as it was registered."""

    number: int
    language: str
    source: str
    name: str | None
    text: RuleText
    reads: frozenset[str]


@dataclass(slots=True)
class RuleStore:
    """All registered texts, by number and by the names of their relations."""

    texts: dict[int, RegisteredText] = field(default_factory=dict)
    by_name: dict[str, RegisteredText] = field(default_factory=dict)
    _next: int = 0

    def find_identical(self, language: str, source: str, name: str | None) -> RegisteredText | None:
        """Return the registered text with exactly this language, source and name, if there is one."""
        wanted = (language, source, name)
        return next((text for text in self.texts.values() if (text.language, text.source, text.name) == wanted), None)

    def add(
        self, language: str, source: str, name: str | None, text: RuleText, number: int | None = None
    ) -> RegisteredText:
        """Keep a text under the next number, or under the number it was stored with."""
        reads = frozenset(relations_read(text))
        registered = RegisteredText(self._next if number is None else number, language, source, name, text, reads)
        self._next = registered.number + 1
        self.texts[registered.number] = registered
        self.by_name |= {relation.name: registered for relation in text.relations}
        return registered

    def remove(self, name: str, may_name: Callable[[str], bool] = lambda name: True) -> RegisteredText:
        """Remove the text that defines a rule; raise while rules of other texts read it.

        The error names those that the caller may see.
        """
        removed = self.find(name)
        own = {relation.name for relation in removed.text.relations}
        self.require_unread(own, f"cannot unregister {name!r}", may_name, removed)
        del self.texts[removed.number]
        for relation in own:
            del self.by_name[relation]
        return removed

    def require_unread(
        self, names: set[str], what: str, may_name: Callable[[str], bool], besides: RegisteredText | None = None
    ) -> None:
        """Raise while rules read one of some names; the error names those that the caller may see."""
        readers = [text for text in self.texts.values() if text is not besides and text.reads & names]
        if readers:
            readings = [reader for text in readers for reader in text.text.names]
            seen = list(filter(may_name, readings))
            more = ["rules of other tenants"] if len(seen) < len(readings) else []
            raise InUse(what, detail=f"Read by: {', '.join(seen + more)}.", hint="Unregister those first.")

    def find(self, name: str) -> RegisteredText:
        """Return the text that defines a rule; raise if there is none."""
        if name not in self.by_name:
            raise UndefinedName(f"no rule is called {name!r}", hint=did_you_mean(name, self.names()))
        return self.by_name[name]

    def names(self) -> list[str]:
        """Return the rules that clients can ask for, in registration order."""
        return [name for text in self.texts.values() for name in text.text.names]

    def relations(self) -> dict[str, Relation]:
        """Return the relations that other rules may read: user-named ones without parameters."""
        return {
            relation.name: relation
            for text in self.texts.values()
            for relation in text.text.relations
            if not relation.name.startswith("@") and text.text.parameters is None
        }

    def relation(self, name: str) -> Relation:
        """Return the relation of a rule."""
        return next(relation for relation in self.find(name).text.relations if relation.name == name)

    def needed(self, names: Iterable[str], cut: frozenset[str] = frozenset()) -> tuple[list[RegisteredText], list[str]]:
        """Return the texts that some answers need, in order, and the relations outside of them."""
        texts: dict[int, RegisteredText] = {}
        outside: dict[str, None] = {}
        queue = list(names)
        for name in queue:
            text = self.by_name.get(name)
            if name in cut or text is None:
                outside[name] = None
            elif text.number not in texts:
                texts[text.number] = text
                queue += sorted(text.reads)
        return [texts[number] for number in sorted(texts)], sorted(outside)

    def program(
        self,
        names: Iterable[str],
        base: Mapping[str, Relation],
        cut: frozenset[str] = frozenset(),
        unregistered: RuleText | None = None,
    ) -> Program:
        """Return the program that some answers need, not compiled; `unregistered` is a text to include."""
        wanted = list(names)
        texts, outside = self.needed(wanted if unregistered is None else relations_read(unregistered), cut)
        all_texts = [text.text for text in texts] + ([] if unregistered is None else [unregistered])
        own = {relation.name for relation in unregistered.relations} if unregistered is not None else set()
        outside = [name for name in outside if name not in own]
        parameters = {text.parameters.name: text.parameters for text in all_texts if text.parameters is not None}
        inputs = [self._outside(name, base, parameters) for name in outside]
        relations = [relation for text in all_texts for relation in text.relations if relation.name not in cut]
        rules = [rule for text in all_texts for rule in text.rules if rule.head.relation not in cut]
        reductions = [item for text in all_texts for item in text.reductions if item.relation not in cut]
        return Program(
            relations=(*inputs, *relations),
            rules=tuple(rules),
            directives=(
                *(Directive("input", name) for name in outside),
                *(Directive("output", name) for name in wanted),
            ),
            reductions=tuple(reductions),
            types=each_once(one for text in all_texts for one in text.types),
            constructors=each_once(one for text in all_texts for one in text.constructors),
            functors=each_once(one for text in all_texts for one in text.functors),
            derives_facts=True,
        )

    def _outside(self, name: str, base: Mapping[str, Relation], parameters: dict[str, Relation]) -> Relation:
        return base.get(name) or parameters.get(name) or self.relation(name)


def each_once(declarations: Iterable[T]) -> tuple[T, ...]:
    """Return declarations without repetitions; several texts may declare the same."""
    return tuple(dict.fromkeys(declarations))


def relations_read(text: RuleText) -> list[str]:
    """Return the relations that the rules of a text read, its own included."""
    in_rules = {atom.relation for rule in text.rules for atom in atoms_of(rule)}
    return sorted(in_rules | {reduction.source for reduction in text.reductions})


# System relations

SYSTEM_PREFIX = "sys_"
SYSTEM_RELATIONS = (
    RelationDeclaration("sys_rule", (("name", "symbol"), ("language", "symbol"), ("text", "symbol"))),
    RelationDeclaration("sys_reads", (("reader", "symbol"), ("read", "symbol"), ("how", "symbol"))),
    RelationDeclaration(
        "sys_column", (("relation", "symbol"), ("place", "number"), ("name", "symbol"), ("kind", "symbol"))
    ),
)
SYSTEM_NAMES = frozenset(declaration.name for declaration in SYSTEM_RELATIONS)
RowsByRelation = dict[str, set[tuple[Any, ...]]]


class SystemRelations:
    """Keeps the system relations equal to the catalogue, once a text reads one of them."""

    def __init__(self, catalog: Catalog, rules: RuleStore) -> None:
        self._catalog = catalog
        self._rules = rules
        self._current: RowsByRelation | None = None  # the rows inserted so far; None until first needed

    def require(self, names: frozenset[str] | set[str]) -> None:
        """Create and fill the system relations if one of them is among `names`."""
        if self._current is None and names & SYSTEM_NAMES:
            for declaration in SYSTEM_RELATIONS:
                self._catalog.add(declaration, keep_on_disk=False)
            self._current = {name: set() for name in SYSTEM_NAMES}
            self.update()

    def update(self) -> None:
        """Transact the difference after a relation or rule was added or removed."""
        if self._current is None:
            return
        wanted = self.rows()
        changes: list[EncodedChanges] = []
        for name in sorted(SYSTEM_NAMES):
            for rows, diff in ((wanted[name] - self._current[name], 1), (self._current[name] - wanted[name], -1)):
                if rows:
                    changes += self._catalog.encode_rows(name, sorted(rows), diff)
        self._current = wanted
        if changes:
            self._catalog.transact(changes, None)

    def rows(self) -> RowsByRelation:
        """Compute the rows that describe the catalogue now."""
        rows: RowsByRelation = {name: set() for name in SYSTEM_NAMES}
        for text in self._rules.texts.values():
            rows["sys_rule"] |= {(name, text.language, text.source) for name in text.text.names}
        program = self._rules.program(self._rules.by_name, self._catalog.in_program())
        rows["sys_reads"] |= {(edge.reader, edge.read, edge.blocking or "reads") for edge in dependencies(program)}
        for relation in {**self._catalog.in_program(), **self._rules.relations()}.values():
            for index, column in enumerate(relation.columns):
                rows["sys_column"].add((relation.name, index, column.name, column.kind))
        return rows

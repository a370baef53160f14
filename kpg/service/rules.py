"""The registered rules of a service.

    store.add(...)                      keep a checked text; build nothing
    store.program(names, base, cut)     the rules and base relations that some answers need, as one program

The program contains each rule once, in registration order. The same texts registered in the same order therefore give
the same program, so that all workers build the same dataflow. Dependencies are not followed past the relations in
`cut`: an existing answer takes the place of each. To add or remove a text costs as much as the text is long, however
many texts there are.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from kpg.errors import InUse, UndefinedName
from kpg.query.ir.program import Directive, Program, Relation
from kpg.query.ir.verify import atoms_of
from kpg.query.source_text import did_you_mean
from kpg.service.languages import RuleText
from kpg.service.named_relations import NamedRelations

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

    @property
    def is_temporary(self) -> bool:
        """Whether it is that of a query, which no client has registered."""
        return not self.language


@dataclass(slots=True)
class RuleStore:
    """All registered texts, by number and by the names of their relations."""

    texts: dict[int, RegisteredText] = field(default_factory=dict)
    by_name: dict[str, RegisteredText] = field(default_factory=dict)
    readable: NamedRelations = field(default_factory=NamedRelations)  # user-named relations without parameters
    changed: OrderedDict[int, None] = field(default_factory=OrderedDict)  # numbers added or removed, until described
    _by_source: dict[tuple[str, str, str | None], RegisteredText] = field(default_factory=dict)
    _readers: dict[str, dict[int, RegisteredText]] = field(default_factory=dict)  # by what they read, then by number
    _next: int = 0

    def find_identical(self, language: str, source: str, name: str | None) -> RegisteredText | None:
        """Return the registered text with exactly this language, source and name, if there is one."""
        return self._by_source.get((language, source, name))

    def add(
        self, language: str, source: str, name: str | None, text: RuleText, number: int | None = None
    ) -> RegisteredText:
        """Keep a text under the next number, or under the number it was stored with."""
        reads = frozenset(relations_read(text))
        registered = RegisteredText(self._next if number is None else number, language, source, name, text, reads)
        self._next = registered.number + 1
        self.texts[registered.number] = registered
        if not registered.is_temporary:
            self.changed[registered.number] = None
            self._by_source.setdefault((language, source, name), registered)
        for relation in text.relations:
            self.by_name[relation.name] = registered
            if not relation.name.startswith("@") and text.parameters is None:
                self.readable.put(relation, not registered.is_temporary)
        for read in reads:
            self._readers.setdefault(read, {})[registered.number] = registered
        return registered

    def readers(self, names: Iterable[str]) -> list[RegisteredText]:
        """Return the texts that read one of the names, in registration order."""
        readers = {number: text for name in names for number, text in self._readers.get(name, {}).items()}
        return [readers[number] for number in sorted(readers)]

    def remove(self, name: str, may_name: Callable[[str], bool] = lambda name: True) -> RegisteredText:
        """Remove the text that defines a rule; raise while rules of other texts read it.

        The error names those that the caller may see.
        """
        removed = self.find(name)
        own = {relation.name for relation in removed.text.relations}
        self.require_unread(own, f"cannot unregister {name!r}", may_name, removed)
        del self.texts[removed.number]
        if not removed.is_temporary:
            self.changed[removed.number] = None
        source = (removed.language, removed.source, removed.name)
        if self._by_source.get(source) is removed:
            del self._by_source[source]
        for relation in own:
            del self.by_name[relation]
            self.readable.remove(relation, not removed.is_temporary)
        for read in removed.reads:
            del self._readers[read][removed.number]
            if not self._readers[read]:
                del self._readers[read]
        return removed

    def require_unread(
        self, names: set[str], what: str, may_name: Callable[[str], bool], besides: RegisteredText | None = None
    ) -> None:
        """Raise while rules read one of some names; the error names those that the caller may see."""
        readers = [text for text in self.readers(names) if text is not besides]
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

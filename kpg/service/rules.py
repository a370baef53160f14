"""The rules that were registered, and which of them, with which base relations, a query needs.

    store.add(...)              keeps a text; builds nothing
    store.program(names, cut)   what some answers need: rules of rules, each once, in the order they were registered

The same rules registered in the same order give the same program, so that all workers build the same dataflow. At
`cut` relations dependencies are not followed: something that exists already takes their place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kpg.errors import InUse, UndefinedName
from kpg.query.ir.program import Directive, Program, Relation
from kpg.query.ir.verify import atoms_of
from kpg.query.source_text import did_you_mean
from kpg.service.languages import Text


@dataclass(frozen=True, slots=True)
class Registered:
    """A text of rules as it was registered."""

    number: int
    language: str
    source: str
    name: str | None
    text: Text
    reads: frozenset[str]


@dataclass(slots=True)
class RuleStore:
    """All rules by name."""

    texts: dict[int, Registered] = field(default_factory=dict)
    by_name: dict[str, Registered] = field(default_factory=dict)
    _next: int = 0

    def same(self, language: str, source: str, name: str | None) -> Registered | None:
        """A text that was registered before, letter for letter."""
        wanted = (language, source, name)
        return next((each for each in self.texts.values() if (each.language, each.source, each.name) == wanted), None)

    def add(self, language: str, source: str, name: str | None, text: Text, number: int | None = None) -> Registered:
        """Keep a text, as the next one or by the number it had."""
        reads = frozenset(reads_of(text))
        made = Registered(self._next if number is None else number, language, source, name, text, reads)
        self._next = made.number + 1
        self.texts[made.number] = made
        self.by_name |= {relation.name: made for relation in text.relations}
        return made

    def remove(self, name: str) -> Registered:
        """Forget the text that a rule is in; refused while rules of other texts read it."""
        found = self.find(name)
        own = {relation.name for relation in found.text.relations}
        readers = [each for each in self.texts.values() if each is not found and each.reads & own]
        if readers:
            names = ", ".join(name for each in readers for name in each.text.names)
            raise InUse(f"cannot unregister {name!r}", detail=f"Read by: {names}.", hint="Unregister those first.")
        del self.texts[found.number]
        for each in own:
            del self.by_name[each]
        return found

    def find(self, name: str) -> Registered:
        """The text that a rule is in."""
        if name not in self.by_name:
            raise UndefinedName(f"no rule is called {name!r}", hint=did_you_mean(name, self.names()))
        return self.by_name[name]

    def names(self) -> list[str]:
        """What can be asked for, in the order it was registered."""
        return [name for each in self.texts.values() for name in each.text.names]

    def relations(self) -> dict[str, Relation]:
        """The relations of all rules that others may read: those that somebody named, and without parameters."""
        return {
            relation.name: relation
            for each in self.texts.values()
            for relation in each.text.relations
            if not relation.name.startswith("@") and each.text.parameters is None
        }

    def relation(self, name: str) -> Relation:
        """The columns of a rule."""
        return next(each for each in self.find(name).text.relations if each.name == name)

    def needed(self, names: Iterable[str], cut: frozenset[str] = frozenset()) -> tuple[list[Registered], list[str]]:
        """The texts that some answers need, in order, and the relations outside of them."""
        found: dict[int, Registered] = {}
        outside: dict[str, None] = {}
        queue = list(names)
        for name in queue:
            text = self.by_name.get(name)
            if name in cut or text is None:
                outside[name] = None
            elif text.number not in found:
                found[text.number] = text
                queue += sorted(text.reads)
        return [found[number] for number in sorted(found)], sorted(outside)

    def program(
        self,
        names: Iterable[str],
        declared: Mapping[str, Relation],
        cut: frozenset[str] = frozenset(),
        beside: Text | None = None,
    ) -> Program:
        """What some answers need, not compiled yet; `beside` is a text that is not registered."""
        wanted = list(names)
        texts, outside = self.needed(wanted, cut) if beside is None else self.needed(reads_of(beside), cut)
        all_texts = [text.text for text in texts] + ([] if beside is None else [beside])
        own = {relation.name for relation in beside.relations} if beside is not None else set()
        outside = [name for name in outside if name not in own]
        parameters = {text.parameters.name: text.parameters for text in all_texts if text.parameters is not None}
        base = [self._outside(name, declared, parameters) for name in outside]
        relations = [each for text in all_texts for each in text.relations if each.name not in cut]
        rules = [rule for text in all_texts for rule in text.rules if rule.head.relation not in cut]
        inputs = [Directive("input", name) for name in outside]
        return Program(
            relations=(*base, *relations),
            rules=tuple(rules),
            directives=(*inputs, *(Directive("output", name) for name in wanted)),
            reductions=tuple(each for text in all_texts for each in text.reductions if each.relation not in cut),
        )

    def _outside(self, name: str, declared: Mapping[str, Relation], parameters: dict[str, Relation]) -> Relation:
        return declared.get(name) or parameters.get(name) or self.relation(name)


def reads_of(text: Text) -> list[str]:
    """The relations that the rules of a text read, its own among them."""
    found = {atom.relation for rule in text.rules for atom in atoms_of(rule)}
    return sorted(found | {each.source for each in text.reductions})

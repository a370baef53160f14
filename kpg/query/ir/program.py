"""Programs: relations, rules, facts, and what goes in and out.

A rule as written has any number of heads and any formula as body; rewrites bring it to one head and a tuple of
literals. Aggregates become `AggregateReduction`s: a relation that is, for each value of its keys, a value computed from another.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kpg.query.ir.literals import Atom, Formula
from kpg.query.ir.terms import Kind, Value
from kpg.query.source_text import NOWHERE, Position

PARAMETER = "@in."  # how the names of relations begin that hold what a query was given


@dataclass(frozen=True, slots=True)
class RelationColumn:
    """A column of a relation: its name, its declared type, and what kind of values that means."""

    name: str
    type: str
    kind: Kind
    at: Position = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Relation:
    """A named, typed relation. It is a set, unless `bag` says that rows count as often as they are derived.

    `functional` are columns of which there is one value at most, given all other columns.
    """

    name: str
    columns: tuple[RelationColumn, ...]
    at: Position = field(default=NOWHERE, compare=False, repr=False)
    made: bool = False  # by a rewrite, so nobody asks for it by name
    bag: bool = False
    functional: tuple[int, ...] = ()

    @property
    def arity(self) -> int:
        """How many columns."""
        return len(self.columns)


@dataclass(frozen=True, slots=True)
class NamedType:
    """A type declared by name: a kind, and the names it may stand in for."""

    name: str
    kind: Kind
    above: frozenset[str]  # itself and every type that it is a subtype of


@dataclass(frozen=True, slots=True)
class Rule:
    """Heads hold wherever the body does. `kinds` says what each variable holds, once inferred."""

    heads: tuple[Atom, ...]
    body: Formula
    at: Position = field(default=NOWHERE, compare=False, repr=False)
    kinds: tuple[tuple[str, Kind], ...] = field(default=(), repr=False)
    joins: str = ""  # how it shall be joined, if somebody said so: see kpg.query.join_strategy

    @property
    def head(self) -> Atom:
        """The only head."""
        (head,) = self.heads
        return head

    def kind_of(self, variable: str) -> Kind:
        """What a variable holds."""
        return dict(self.kinds)[variable]


@dataclass(frozen=True, slots=True)
class AggregateReduction:
    """A relation computed from another: its first `keys` columns group, `op` of column `value` comes last.

    With no column a count; the rows of `source` are the solutions, each once.
    """

    relation: str
    source: str
    keys: int
    op: str
    value: int | None
    at: Position = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Fact:
    """A row of a relation that the program itself states."""

    relation: str
    values: tuple[Value, ...]
    at: Position = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Directive:
    """That a relation is read or written, and how: `kind` is input, output or printsize."""

    kind: str
    relation: str
    options: tuple[tuple[str, str], ...] = ()
    at: Position = field(default=NOWHERE, compare=False, repr=False)

    def option(self, name: str, default: str) -> str:
        """The value of an option."""
        return dict(self.options).get(name, default)


@dataclass(frozen=True, slots=True)
class Stratum:
    """Relations that are computed together, after all strata before: by going round if they depend on themselves."""

    relations: tuple[str, ...]
    recursive: bool


@dataclass(frozen=True, slots=True)
class Program:
    """Everything that was said, and what rewrites have made of it."""

    relations: tuple[Relation, ...]
    rules: tuple[Rule, ...] = ()
    facts: tuple[Fact, ...] = ()
    directives: tuple[Directive, ...] = ()
    types: tuple[NamedType, ...] = ()
    reductions: tuple[AggregateReduction, ...] = ()
    strata: tuple[Stratum, ...] = ()
    stage: int = 0  # how many rewrites are done
    insert_only: bool = False  # no row of an input is ever removed
    joins: str = ""  # how rules shall be joined that do not say so themselves

    def by_name(self) -> dict[str, Relation]:
        """The relations."""
        return {relation.name: relation for relation in self.relations}

    def rules_of(self, name: str) -> list[Rule]:
        """The rules with one head, for a relation."""
        return [rule for rule in self.rules if rule.head.relation == name]

    def wanted(self) -> list[str]:
        """The relations that somebody reads, each once."""
        return list(dict.fromkeys(each.relation for each in self.directives if each.kind != "input"))

    def with_rules(self, rules: tuple[Rule, ...]) -> Program:
        """The same program with other rules."""
        return replace(self, rules=rules)

"""The intermediate representation of programs: relations, rules, facts, inputs and outputs.

A parsed rule has any number of heads and any formula as its body; the rewrites reduce it to one head and a conjunction
of literals. Each aggregate becomes an `AggregateReduction`: a relation that holds, for each key, one value computed
from the rows of another relation. All values are immutable.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from kpg.query.ir.constructors import Constructor, Signatures, UserFunctor
from kpg.query.ir.literals import Atom, Formula
from kpg.query.ir.primitive_types import Range
from kpg.query.ir.terms import Kind, Value
from kpg.query.source_text import NOWHERE, Position

# What the rows of a relation mean, besides "the rows that its rules derive". Rewrites that restrict a relation to some
# of its rows must leave all kinds but "plain" alone: a row of the others depends on rows that no rule connects it to.
#   equivalence   the least equivalence relation that contains the derived pairs (eqrel)
#   subsumed      the derived rows that no other row subsumes
#   aggregated    one row for each group of the derived rows (an aggregate in the head)
#   choice        some of the derived rows: at most one for each value of a choice domain
RelationKind = Literal["plain", "equivalence", "subsumed", "aggregated", "choice"]
EVERYTHING = "*"  # stands for all relations in requests for magic sets
PARAMETER = "@in."  # prefix of the relations that hold the parameters of a query


@dataclass(frozen=True, slots=True)
class RelationColumn:
    """A column of a relation: its name, its declared type, and the kind of that type's values."""

    name: str
    type: str
    kind: Kind
    at: Position = field(default=NOWHERE, compare=False, repr=False)
    range: Range | None = None  # of the values of a small integer type, as int8


@dataclass(frozen=True, slots=True)
class Relation:
    """A named, typed relation: a set, or with `bag` a multiset that holds each row once for each derivation.

    `functional` are the columns that all other columns determine: at most one value for each combination of the others.
    """

    name: str
    columns: tuple[RelationColumn, ...]
    at: Position = field(default=NOWHERE, compare=False, repr=False)
    generated: bool = False  # by a parser or rewrite; users do not see it
    bag: bool = False
    functional: tuple[int, ...] = ()
    kind: RelationKind = "plain"
    domains: tuple[tuple[int, ...], ...] = ()  # the columns of each choice domain
    inline: bool = False  # never computed: its rules replace its atoms
    input_of: str = ""  # a relation whose rows from outside belong to this one instead

    @property
    def arity(self) -> int:
        """The number of columns."""
        return len(self.columns)

    @property
    def is_carried(self) -> bool:
        """Whether a recursion carries the relation from one round to the next; others are computed within a round."""
        return not self.generated or (self.kind == "equivalence" and self.input_of != "")


@dataclass(frozen=True, slots=True)
class NamedType:
    """A declared type: its kind and its supertypes."""

    name: str
    kind: Kind
    supertypes: frozenset[str]  # including itself


@dataclass(frozen=True, slots=True)
class Rule:
    """The heads hold for every solution of the body. `kinds` are the kinds of the variables, once inferred.

    A rewrite that evaluates a part of a rule a second time gives that rule a `role`. A "silent" rule drops the
    solutions on which an expression fails: another rule reports them. A rule for "errors" reports them and derives
    nothing.
    """

    heads: tuple[Atom, ...]
    body: Formula
    at: Position = field(default=NOWHERE, compare=False, repr=False)
    kinds: tuple[tuple[str, Kind], ...] = field(default=(), repr=False)
    joins: str = ""  # the join hint of this rule, if any: see kpg.query.join_strategy
    subsumes: bool = False  # the row of the head is dropped where the body holds; the body begins with the other row
    role: str = ""

    @property
    def head(self) -> Atom:
        """The head of a rule with one head."""
        (head,) = self.heads
        return head

    def kind_of(self, variable: str) -> Kind:
        """Return the kind of a variable."""
        return dict(self.kinds)[variable]


@dataclass(frozen=True, slots=True)
class AggregateReduction:
    """A relation computed from another: it groups `source` by its first `keys` columns and appends one value.

    The value is `op` over column `value` of the group's rows, or the number of rows if `value` is None. The rows of
    `source` are the solutions of the aggregate's body, each once. With a `limit`, min and max have one row for each of
    the first values, at most `limit` rows in a group. The op "class" is no aggregate: `source` are pairs, and the
    relation has each value of a pair with a value that stands for all that pairs connect it to. Neither is "number":
    each row of `source` gets a number, from `value` on in steps of `limit`.
    """

    relation: str
    source: str
    keys: int
    op: str
    value: int | None
    at: Position = field(default=NOWHERE, compare=False, repr=False)
    limit: int = 0
    monotone: bool = False  # may be part of a recursion: its value moves in one direction only


@dataclass(frozen=True, slots=True)
class Fact:
    """A row that the text of the program states."""

    relation: str
    values: tuple[Value, ...]
    at: Position = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Directive:
    """An input or output of the program: `kind` is input, output or printsize."""

    kind: str
    relation: str
    options: tuple[tuple[str, str], ...] = ()
    at: Position = field(default=NOWHERE, compare=False, repr=False)

    def option(self, name: str, default: str) -> str:
        """Return the value of an option."""
        return dict(self.options).get(name, default)


@dataclass(frozen=True, slots=True)
class SizeLimit:
    """The recursion of a relation stops when the relation has this many rows."""

    relation: str
    rows: int
    at: Position = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Stratum:
    """Relations that are computed together, after all earlier strata; iterated if they depend on themselves."""

    relations: tuple[str, ...]
    recursive: bool


@dataclass(frozen=True, slots=True)
class Program:
    """A program, before, between and after the rewrites."""

    relations: tuple[Relation, ...]
    rules: tuple[Rule, ...] = ()
    facts: tuple[Fact, ...] = ()
    directives: tuple[Directive, ...] = ()
    types: tuple[NamedType, ...] = ()
    reductions: tuple[AggregateReduction, ...] = ()
    strata: tuple[Stratum, ...] = ()
    insert_only: bool = False  # no row of an input is ever removed
    joins: str = ""  # the join hint for rules that have none of their own
    limits: tuple[SizeLimit, ...] = ()
    magic: tuple[str, ...] = ()  # relations to compute on demand, as the program requests; "*": all
    no_magic: tuple[str, ...] = ()  # relations never to restrict by demand; "*": all
    constructors: tuple[Constructor, ...] = ()  # of the records and algebraic types
    functors: tuple[UserFunctor, ...] = ()
    derives_facts: bool = False  # heads without a body stay rules, as in a service, instead of rows to insert

    def signatures(self) -> Signatures:
        """Return the signatures of all functors and constructors that rules may call."""
        return Signatures(self.constructors, self.functors, {type_.name: type_.kind for type_ in self.types})

    def by_name(self) -> dict[str, Relation]:
        """Return the relations by name."""
        return {relation.name: relation for relation in self.relations}

    def rules_of(self, name: str) -> list[Rule]:
        """Return the rules of a relation; every rule must have one head."""
        return [rule for rule in self.rules if rule.head.relation == name]

    def outputs(self) -> list[str]:
        """Return the names of the relations that are read from outside, each once."""
        return list(dict.fromkeys(directive.relation for directive in self.directives if directive.kind != "input"))

    def with_rules(self, rules: tuple[Rule, ...]) -> Program:
        """Return the program with other rules."""
        return replace(self, rules=rules)


def part_of(name: str, part: str) -> str:
    """Return the name of a generated relation that is a part of another one."""
    return f"@{name}.{part}"


def written_name(name: str) -> str:
    """Return the name that the user knows a relation by: that of the relation which a generated one is a part of."""
    if name.startswith("@"):
        return name[1:].rpartition(".")[0] or name
    return name.partition("@")[0]  # without the bound columns of a relation that demand restricts

"""A compiled program as collections: inputs, then each stratum after those it reads.

    lowered = Lowered(db, program)
    lowered.inputs["edge"]            where its rows come from, if they come from outside
    lowered.collections["path"]       the relation, kept up to date

A relation that depends on itself is a loop: one for each stratum, with a variable for each of its relations. Each
relation is a set: `distinct` is left out only where each row is derived once in any case. Nothing is installed here.

Where its rules allow, a recursion is one operator instead (`kpg/query/lower/lower_recursion.py`). With `insert_only`, no row of
an input may be removed, and that operator keeps nothing to take rows back with.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kpg.columns.functions import col
from kpg.columns.schema import Schema
from kpg.plan import nodes
from kpg.query.binary_joins import is_set
from kpg.query.ir.literals import atoms
from kpg.query.ir.program import AggregateReduction, Program, Relation, Rule, Stratum
from kpg.query.ir.rewrites.stratify import dependencies, strongly_connected
from kpg.query.join_strategy import NOTHING, RulePlan, Situation, check_hint, plan_rule, situation_of
from kpg.query.lower.expressions import TYPES
from kpg.query.lower.lower_deltas import build_pipelines
from kpg.query.lower.lower_recursion import (
    LARGE,
    is_recursive,
    is_seeded,
    keepable,
    recursive_rules,
    saturable,
    system_of,
)
from kpg.query.lower.lower_rule import UNIT, Surroundings, build_rule
from kpg.seminaive.rule_paths import can_maintain

if TYPE_CHECKING:
    from kpg.api.collection import Collection
    from kpg.api.contracts import Database, Input, SourceCollection

UNIT_INPUT = "unit of queries"


@dataclass(slots=True)
class Lowered:
    """The collections of a program."""

    db: Database
    program: Program
    distinct_inputs: bool = True  # False: whoever inserts sees to it that no row is there twice
    max_rounds: int | None = None
    insert_only: bool = False
    inputs: dict[str, SourceCollection] = field(default_factory=dict)
    joins: str = "auto"  # how rules are joined: see kpg.query.join_strategy
    collections: dict[str, Collection] = field(default_factory=dict)
    plans: list[RulePlan] = field(default_factory=list)  # of all rules, as they were built
    _relations: dict[str, Relation] = field(default_factory=dict)
    _keys: dict[tuple[str, tuple[str, ...], int], Collection] = field(default_factory=dict)
    _situation: Situation = NOTHING

    def __post_init__(self) -> None:
        check_hint(self.joins)
        self._relations = self.program.by_name()
        for name in base_relations(self.program):
            if name not in self.inputs:
                self.inputs[name] = self.db.input(name, schema_of(self._relations[name]))
        if self.insert_only:
            for made in self.inputs_of_db().values():
                made.set_insert_only()
        self._situation = replace(
            situation_of(self.program, self.joins), static=self._static(), ordered=self.db.config.coordinates == 1
        )
        for stratum in self.program.strata:
            self._add(stratum)

    def inputs_of_db(self) -> dict[str, Input]:
        """Return the base relations that rows can be inserted into."""
        from kpg.api.contracts import Input

        return {name: relation for name, relation in self.inputs.items() if isinstance(relation, Input)}

    def _add(self, stratum: Stratum) -> None:
        if stratum.recursive:
            if self._hinted(stratum) or not self._saturated(stratum):
                self._loop(stratum)
        else:
            for name in stratum.relations:
                self.collections[name] = self._defined(name, recursive=False)

    def _loop(self, stratum: Stratum) -> None:
        """Relations that depend on each other: each starts empty, and each round applies all rules once."""
        loop = self.db.loop(self._name(stratum), self.max_rounds)
        own = [name for name in stratum.relations if not self._relations[name].made]
        variables = {}
        for name in own:
            variables[name] = self.collections[name] = loop.variable(schema_of(self._relations[name]))
        for name in self._in_between(stratum):
            self.collections[name] = self._defined(name, recursive=False)
        definitions = {name: self._defined(name, recursive=True) for name in own}
        for name, definition in definitions.items():
            variables[name].set(definition)
        for name, definition in definitions.items():
            self.collections[name] = loop.leave(definition)

    def _name(self, stratum: Stratum) -> str:
        """What a recursion is called, and where it stands."""
        rules = [rule for name in stratum.relations for rule in self.program.rules_of(name)]
        where = min((rule.at for rule in rules), key=lambda at: (at.line, at.column))
        return f"the recursion of {', '.join(stratum.relations)} ({where})"

    def _saturated(self, stratum: Stratum) -> bool:
        """Make one operator of relations that depend on each other, fed by what does not depend on them, if it can be.

        Several workers go round instead, as under times of many coordinates.
        """
        from kpg.api.collection import Collection

        alone = self.db.is_single_worker and self.db.config.coordinates == 1
        only_grows = self.insert_only and saturable(self.program, stratum) is None
        if not alone or not (only_grows or keepable(self.program, stratum) is None):
            return False
        rules = recursive_rules(self.program, stratum)
        every = dict.fromkeys(atom.relation for rule in rules for atom, _ in atoms(rule.body))
        read = [name for name in every if name not in stratum.relations]
        limit = self.max_rounds or self.db.config.max_rounds
        system = system_of(self.program, stratum, read, self.db.symbols, self._name(stratum), limit)
        if not only_grows:
            size = sum(self.inputs[name].size for name in read if name in self.inputs)
            if size > LARGE and is_seeded(self.program, stratum):
                return False
            assert can_maintain(system)
            system = replace(system, insert_only=False)
        rows = self._rows if only_grows else self.collections.__getitem__
        inputs = [self._before(name, stratum, only_grows) for name in stratum.relations] + [rows(name) for name in read]
        saturation = nodes.SaturationSpec(system, tuple(each.node for each in inputs))
        for number, name in enumerate(stratum.relations):
            schema = schema_of(self._relations[name])
            self.collections[name] = Collection(self.db, nodes.SaturatedNode(schema, frozenset(), saturation, number))
        return True

    def _before(self, name: str, stratum: Stratum, repeat: bool) -> Collection:
        """What a relation of a recursion holds before it recurs; if rows may `repeat`, as often as they are derived."""
        read = self._rows if repeat else self.collections.__getitem__
        around = Surroundings(read, self._keys_of, self._relations, self._unit)
        rules = [rule for rule in self.program.rules_of(name) if not is_recursive(rule, stratum)]
        parts: list[Collection] = [] if name not in self.inputs else [self._base(name)]
        situation = replace(self._situation, joins="binary") if repeat else self._situation
        parts += [self._built(rule, around, situation) for rule in rules]
        if not parts:
            return self._nothing(name)
        all_rows = parts[0].concat(*parts[1:])
        single = len(parts) == 1 and (not rules or is_set(rules[0]))
        return all_rows if repeat or single else all_rows.distinct()

    def _rows(self, name: str) -> Collection:
        """The rows of a relation for who does not mind repetitions."""
        derived = self.program.rules_of(name) or any(each.relation == name for each in self.program.reductions)
        return self.collections[name] if derived or name not in self.inputs else self.inputs[name]

    def _in_between(self, stratum: Stratum) -> list[str]:
        """The relations of a loop that a rewrite made, each after those it reads: no variables, but parts of rules.

        What an aggregate comes to must be seen in the round in which it is asked for: a round later would be too late
        for whoever takes its absence for zero.
        """
        graph: dict[str, list[str]] = {name: [] for name in stratum.relations if self._relations[name].made}
        for edge in dependencies(self.program):
            if edge.reader in graph and edge.read in graph:
                graph[edge.reader].append(edge.read)
        return [name for part in strongly_connected(graph) for name in part]

    def _defined(self, name: str, recursive: bool) -> Collection:
        """What a relation holds, from its input, its rules and its reduction."""
        parts: list[Collection] = [] if name not in self.inputs else [self._base(name)]
        rules = self.program.rules_of(name)
        around = Surroundings(self.collections.__getitem__, self._keys_of, self._relations, self._unit)
        parts += [self._built(rule, around, self._situation) for rule in rules]
        parts += [self._reduced(each) for each in self.program.reductions if each.relation == name]
        if not parts:
            parts = [self._nothing(name)]
        all_rows = parts[0].concat(*parts[1:]) if len(parts) > 1 else parts[0]
        if self._relations[name].bag:
            return all_rows
        single = len(parts) == 1 and (not rules or is_set(rules[0]))
        return all_rows if single and not recursive else all_rows.distinct()

    def _built(self, rule: Rule, around: Surroundings, situation: Situation) -> Collection:
        """The rows that a rule derives, joined as is best or as somebody said."""
        plan = plan_rule(rule, situation)
        self.plans.append(plan)
        return build_pipelines(plan, around) if plan.pipelines else build_rule(plan, around)

    def _hinted(self, stratum: Stratum) -> bool:
        """Whether somebody said how the rules of a stratum shall be joined."""
        rules = [rule for name in stratum.relations for rule in self.program.rules_of(name)]
        return self._situation.joins != "auto" or any(rule.joins for rule in rules)

    def _static(self) -> frozenset[str]:
        """The relations that never change again and are known as of whatever time anything is: closed inputs.

        All their rows must have come before the earliest time that rows of others may be of: a row that comes later
        would be missed by those that wait for it.
        """
        if self.db.config.history != 0 or not any(each.closed for each in self.inputs.values()):
            return frozenset()
        earliest = min(self.db.horizon(frozenset({name})).elements[0] for name in self.inputs)
        closed = {
            name
            for name, each in self.inputs.items()
            if each.closed and each.latest is not None and each.latest <= earliest
        }
        derived = {rule.head.relation for rule in self.program.rules}
        return frozenset(closed - derived)

    def _base(self, name: str) -> Collection:
        made = self.inputs[name]
        return made.distinct() if self.distinct_inputs else made

    def _nothing(self, name: str) -> Collection:
        """A relation that no rule derives any more: its rules were found never to hold."""
        loop = self.db.loop("nothing", 1)
        empty = loop.variable(schema_of(self._relations[name]))
        empty.set(empty)
        return loop.leave(empty)

    def _keys_of(self, name: str, columns: tuple[str, ...]) -> Collection:
        """Each combination of some columns of a relation, once; made once for all who ask."""
        rows = self.collections[name]
        place = (name, columns, id(rows))
        if place not in self._keys:
            self._keys[place] = rows.select(*columns).distinct()
        return self._keys[place]

    def _unit(self) -> Collection:
        """A collection of one row."""
        found = self.db.inputs.get(UNIT_INPUT)
        if found is None:
            found = self.db.input(UNIT_INPUT, Schema.of({UNIT: int}), keep_on_disk=False)
            found.insert([(0,)])
        return found

    def _reduced(self, reduction: AggregateReduction) -> Collection:
        """The groups of a relation, each with what is computed of it."""
        source = [column.name for column in self._relations[reduction.source].columns]
        made = [column.name for column in self._relations[reduction.relation].columns]
        keys = source[: reduction.keys]
        group = self.collections[reduction.source].group_by(*keys)
        value = "" if reduction.value is None else source[reduction.value]
        match reduction.op:
            case "count":
                result = group.count("= value")
            case "sum":
                result = group.sum(**{"= value": value})
            case "mean":
                result = group.avg(**{"= value": value})
            case "min":
                result = group.min(value, "= value")
            case _:
                result = group.max(value, "= value")
        return result.select(**{name: col(of) for name, of in zip(made, [*keys, "= value"], strict=True)})


def base_relations(program: Program) -> list[str]:
    """The relations with rows from outside: read from files, stated as facts, or derived by no rule."""
    stated = {fact.relation for fact in program.facts}
    stated |= {directive.relation for directive in program.directives if directive.kind == "input"}
    derived = {rule.head.relation for rule in program.rules} | {each.relation for each in program.reductions}
    return [
        relation.name
        for relation in program.relations
        if relation.name in stated or not (relation.name in derived or relation.made)
    ]


def schema_of(relation: Relation) -> Schema:
    """The columns of a relation; one that has none has a column that always holds 0."""
    return Schema.of({column.name: TYPES[column.kind] for column in relation.columns} or {UNIT: int})

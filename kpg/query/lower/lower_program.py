"""Lower a compiled program to collections: its inputs, then each stratum after those it reads.

    lowered = LoweredProgram(db, program)
    lowered.inputs["edge"]            the input of a relation with rows from outside
    lowered.collections["path"]       the relation, kept up to date

A recursive stratum becomes a loop with one variable for each of its relations, or, where its rules allow, one operator
(kpg/query/lower/lower_recursion.py). Each relation is a set: `distinct` is omitted only where each row is derived once
in any case. With `insert_only`, no row of an input may be removed, and the operator of a recursion keeps no state for
removals. With `one_load`, the inputs do not change after the first answer, so this holds for recursions that negate,
too. On one worker, the operator also computes relations that only read such a recursion. Lowering only describes
collections; installing them is left to the caller.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kpg.columns.expression_origin import ExpressionOrigin
from kpg.columns.functions import col
from kpg.columns.pause_points import pause
from kpg.columns.schema import Schema
from kpg.plan import nodes
from kpg.query.binary_joins import is_set
from kpg.query.ir.literals import atoms
from kpg.query.ir.program import AggregateReduction, Program, Relation, Rule, Stratum, written_name
from kpg.query.ir.rewrites.stratify import dependencies, strongly_connected
from kpg.query.ir.terms import VariableTerm
from kpg.query.join_strategy import NO_CONTEXT, PlanningContext, RulePlan, check_hint, plan_rule, planning_context
from kpg.query.lower.equivalence_classes import equivalence_classes
from kpg.query.lower.lower_deltas import build_pipelines
from kpg.query.lower.lower_history import choose_rows_of, number_rows_of
from kpg.query.lower.lower_recursion import (
    SEEDED_READ_ROWS,
    TextRelations,
    is_recursive,
    is_seeded,
    maintenance_obstacle,
    recursive_rules,
    saturation_obstacle,
    system_of,
)
from kpg.query.lower.lower_rule import RuleContext, build_rule
from kpg.query.lower.recursion_readers import with_readers
from kpg.query.lower.size_limits import with_size_limits
from kpg.query.lower.unit_input import UNIT, unit_input
from kpg.query.lower.value_expressions import column_type, within_range
from kpg.seminaive.rule_paths import can_maintain

if TYPE_CHECKING:
    from kpg.api.collection import Collection
    from kpg.api.contracts import Database, Input, SourceCollection


@dataclass(slots=True)
class LoweredProgram:
    """The collections of a program."""

    db: Database
    program: Program
    distinct_inputs: bool = True  # False: the caller guarantees that inputs hold no row twice
    max_rounds: int | None = None
    insert_only: bool = False
    one_load: bool = False  # the inputs have all their rows before the first answer, and do not change afterwards
    inputs: dict[str, SourceCollection] = field(default_factory=dict)
    joins: str = "auto"  # the join hint for all rules: see kpg.query.join_strategy
    collections: dict[str, Collection] = field(default_factory=dict)
    plans: list[RulePlan] = field(default_factory=list)  # of all rules, in the order they were lowered
    relation_nodes: dict[nodes.PlanNode, str] = field(default_factory=dict)  # the relation that each plan computes
    _relations: dict[str, Relation] = field(default_factory=dict)
    _keys: dict[tuple[str, tuple[str, ...], int], Collection] = field(default_factory=dict)
    _planning: PlanningContext = NO_CONTEXT

    def __post_init__(self) -> None:
        check_hint(self.joins)
        self._relations = self.program.by_name()
        for name in base_relations(self.program):
            if name not in self.inputs:
                self.inputs[name] = self.db.input(name, schema_of(self._relations[name]))
        if self.insert_only:
            for source in self.inputs_of_db().values():
                source.set_insert_only()
        self._planning = replace(
            planning_context(self.program, self.joins), static=self._static(), ordered=self.db.config.coordinates == 1
        )
        for stratum in self.program.strata:
            pause()
            self._add(stratum)

    def inputs_of_db(self) -> dict[str, Input]:
        """Return the base relations that rows can be inserted into."""
        from kpg.api.contracts import Input

        return {name: relation for name, relation in self.inputs.items() if isinstance(relation, Input)}

    def _add(self, stratum: Stratum) -> None:
        if stratum.relations[0] in self.collections:
            return  # a recursion that it reads computes it
        if stratum.recursive:
            if self._has_join_hint(stratum) or self._limits(stratum) or not self._add_recursion_operator(stratum):
                self._add_loop(stratum)
        else:
            for name in stratum.relations:
                self.collections[name] = self._definition(name, recursive=False)
                self._label(self.collections[name], name)

    def _label(self, collection: Collection, name: str) -> None:
        """Note the relation that a plan computes. Plans of unnamed relations belong to the relations that read them."""
        if self.program.rules_of(name) and not written_name(name)[0].isdigit():
            self.relation_nodes[collection.node] = written_name(name)

    def _add_loop(self, stratum: Stratum) -> None:
        """Add a loop: each relation starts empty, and each round applies all rules once."""
        loop = self.db.loop(self._name(stratum), self.max_rounds)
        loop.loop.declarative = True
        loop.loop.as_written = "its rules ask for one, or are more than joins and comparisons"
        own = [name for name in stratum.relations if self._relations[name].is_carried]
        variables = {}
        for name in own:
            variables[name] = self.collections[name] = loop.variable(schema_of(self._relations[name]))
        for name in self._generated_relations(stratum):
            self.collections[name] = self._definition(name, recursive=False)
        definitions = {name: self._definition(name, recursive=True) for name in own}
        if any(self._relations[name].kind in ("subsumed", "aggregated") for name in own):
            definitions |= {  # a row derived from a row that is replaced later stays, so the rounds come to an end
                name: definitions[name].concat(variables[name]).distinct()
                for name in own
                if self._relations[name].kind == "plain"
            }
        limits = self._limits(stratum)
        if limits:
            definitions = with_size_limits(definitions, variables, limits)
        for name, definition in definitions.items():
            variables[name].set(definition)
        for name in stratum.relations:
            inside = definitions.get(name, self.collections[name])
            self._label(inside, name)
            self.collections[name] = loop.leave(inside)

    def _limits(self, stratum: Stratum) -> dict[str, int]:
        """Return the size limits of a recursion's relations."""
        return {limit.relation: limit.rows for limit in self.program.limits if limit.relation in stratum.relations}

    def _name(self, stratum: Stratum) -> str:
        """Return the name of a recursion for error messages, with the position of its first rule."""
        rules = [rule for name in stratum.relations for rule in self.program.rules_of(name)]
        first = min((rule.at for rule in rules), key=lambda at: (at.line, at.column))
        names = dict.fromkeys(map(written_name, stratum.relations))
        return f"the recursion of {', '.join(names)} ({first})"

    def _add_recursion_operator(self, stratum: Stratum) -> bool:
        """Add one operator for a recursion if its rules allow it; return whether they do.

        Only for times of one coordinate: otherwise the recursion is a loop.
        """
        from kpg.api.collection import Collection

        obstacle = maintenance_obstacle if self.one_load else saturation_obstacle
        insert_only = (self.insert_only or self.one_load) and obstacle(self.program, stratum) is None
        if self.db.config.coordinates > 1 or not (insert_only or maintenance_obstacle(self.program, stratum) is None):
            return False
        name = self._name(stratum)
        if insert_only and self.db.is_single_worker:  # with readers, fewer recursions could be divided among workers
            stratum = with_readers(self.program, stratum, self.collections, obstacle)
        rules = recursive_rules(self.program, stratum)
        every = dict.fromkeys(atom.relation for rule in rules for atom, _ in atoms(rule.body))
        read = [name for name in every if name not in stratum.relations]
        limit = self.max_rounds or self.db.config.max_rounds
        texts = None if self.db.is_single_worker else TextRelations(len(stratum.relations) + len(read))
        system = system_of(self.program, stratum, read, self.db.symbols, name, limit, texts)
        if not insert_only:
            size = sum(self.inputs[name].size for name in read if name in self.inputs)
            if size > SEEDED_READ_ROWS and is_seeded(self.program, stratum):
                return False
            assert can_maintain(system)
            system = replace(system, insert_only=False)
        rows = self._unconsolidated_rows if insert_only else self.collections.__getitem__
        inputs = [self._initial_rows(name, stratum, insert_only) for name in stratum.relations]
        inputs += [rows(name) for name in read]
        for kind, value in [] if texts is None else texts.constants:
            inputs.append(self.db.values([(value,)], Schema.of({"text": column_type(kind)})))
        starts = tuple(collection.node for collection in inputs)
        saturation = nodes.SaturationSpec(system, starts, tuple(map(written_name, stratum.relations)))
        for number, name in enumerate(stratum.relations):
            schema = schema_of(self._relations[name])
            self.collections[name] = Collection(self.db, nodes.SaturatedNode(schema, frozenset(), saturation, number))
        return True

    def _initial_rows(self, name: str, stratum: Stratum, repeat: bool) -> Collection:
        """Return the rows of a recursive relation by its rules that do not recur; with `repeat`, rows may repeat."""
        read = self._unconsolidated_rows if repeat else self.collections.__getitem__
        context = RuleContext(read, self._keys_of, self._relations, self._unit)
        all_rules = [rule for rule in self.program.rules_of(name) if not is_recursive(rule, stratum)]
        rules = [rule for rule in all_rules if not is_error(rule)]
        parts = self._outside_rows(name)
        planning = replace(self._planning, joins="binary") if repeat else self._planning
        parts += [self._rule_rows(rule, context, planning) for rule in rules]
        single = len(parts) < 2 and (not rules or is_set(rules[0]))
        parts += [self._rule_rows(rule, context, planning) for rule in all_rules if is_error(rule)]
        if not parts:
            return self._empty(name)
        all_rows = parts[0].concat(*parts[1:])
        return all_rows if repeat or single else all_rows.distinct()

    def _unconsolidated_rows(self, name: str) -> Collection:
        """Return the rows of a relation for a reader that accepts repeated rows: an input without `distinct`."""
        derived = self.program.rules_of(name) or name in {reduction.relation for reduction in self.program.reductions}
        return self.collections[name] if derived or name not in self.inputs else self.inputs[name]

    def _generated_relations(self, stratum: Stratum) -> list[str]:
        """Return the generated relations of a loop, each after those it reads. They are not variables of the loop.

        An aggregate's value must be visible in the round that asks for it: one round later, a rule that reads its
        absence as zero would already have used the zero.
        """
        graph: dict[str, list[str]] = {name: [] for name in stratum.relations if not self._relations[name].is_carried}
        for edge in dependencies(self.program):
            if edge.reader in graph and edge.read in graph:
                graph[edge.reader].append(edge.read)
        return [name for part in strongly_connected(graph) for name in part]

    def _definition(self, name: str, recursive: bool) -> Collection:
        """Return the rows of a relation from its input, its rules and its reduction."""
        parts = self._outside_rows(name)
        rules = [rule for rule in self.program.rules_of(name) if not is_error(rule)]
        context = RuleContext(self.collections.__getitem__, self._keys_of, self._relations, self._unit)
        parts += [self._rule_rows(rule, context, self._planning) for rule in rules]
        parts += [
            self._reduction_rows(reduction) for reduction in self.program.reductions if reduction.relation == name
        ]
        errors = [rule for rule in self.program.rules_of(name) if is_error(rule)]
        single = len(parts) < 2 and (not rules or is_set(rules[0]))
        parts += [self._rule_rows(rule, context, self._planning) for rule in errors]
        if not parts:
            parts = [self._empty(name)]
        all_rows = parts[0].concat(*parts[1:]) if len(parts) > 1 else parts[0]
        if self._relations[name].bag:
            return all_rows
        if self._relations[name].kind == "choice" and self._relations[name].domains:
            return choose_rows_of(all_rows.distinct(), self._relations[name])
        reduced = self._relations[name].kind in ("subsumed", "aggregated")  # its rule has a set for its body
        return all_rows if single and (reduced or not recursive) else all_rows.distinct()

    def _rule_rows(self, rule: Rule, context: RuleContext, planning: PlanningContext) -> Collection:
        """Return the rows that a rule derives, by the join strategy chosen for it, and its errors."""
        plan = plan_rule(rule, planning)
        self.plans.append(plan)
        rows = build_pipelines(plan, context) if plan.pipelines else build_rule(plan, context)
        return rows.concat(*[build_rule(errors, context) for errors in plan.errors]) if plan.errors else rows

    def _has_join_hint(self, stratum: Stratum) -> bool:
        """Return whether a hint says how to join the rules of a stratum."""
        rules = [rule for name in stratum.relations for rule in self.program.rules_of(name)]
        return self._planning.joins != "auto" or any(rule.joins for rule in rules)

    def _static(self) -> frozenset[str]:
        """Return the relations that never change again and can be read as of any time: closed inputs.

        All their rows must have times at or before the earliest time of other relations' rows: a pipeline that starts
        from an earlier row would miss later rows of a static relation.
        """
        if self.db.config.history != 0 or not any(source.closed for source in self.inputs.values()):
            return frozenset()
        earliest = min(self.db.horizon(frozenset({name})).elements[0] for name in self.inputs)
        closed = {
            name
            for name, source in self.inputs.items()
            if source.closed and source.latest is not None and source.latest <= earliest
        }
        derived = {rule.head.relation for rule in self.program.rules}
        return frozenset(closed - derived)

    def _outside_rows(self, name: str) -> list[Collection]:
        """Return the rows of a relation from outside, unless another relation has them; at most one collection."""
        source = self._relations[name].input_of or name
        taken = source == name and any(relation.input_of == name for relation in self._relations.values())
        return [] if taken or source not in self.inputs else [self._input_rows(source)]

    def _input_rows(self, name: str) -> Collection:
        source = within_ranges(self.inputs[name], self._relations[name])
        return source.distinct() if self.distinct_inputs else source

    def _empty(self, name: str) -> Collection:
        """Return an empty collection, for a relation with rules that can never hold."""
        loop = self.db.loop("nothing", 1)
        empty = loop.variable(schema_of(self._relations[name]))
        empty.set(empty)
        return loop.leave(empty)

    def _keys_of(self, name: str, columns: tuple[str, ...]) -> Collection:
        """Return the distinct values of some columns of a relation; one collection serves all readers."""
        rows = self.collections[name]
        key = (name, columns, id(rows))
        if key not in self._keys:
            self._keys[key] = rows.select(*columns).distinct()
        return self._keys[key]

    def _unit(self) -> Collection:
        """Return a collection of one row."""
        return unit_input(self.db)

    def _reduction_rows(self, reduction: AggregateReduction) -> Collection:
        """Return the groups of a relation, each with its aggregated value."""
        if reduction.op == "number":
            return number_rows_of(self.collections[reduction.source], self._relations[reduction.relation], reduction)
        if reduction.op == "class":
            element, of_class = (column.name for column in self._relations[reduction.relation].columns)
            return equivalence_classes(self.collections[reduction.source], element, of_class)
        source = [column.name for column in self._relations[reduction.source].columns]
        result_columns = [column.name for column in self._relations[reduction.relation].columns]
        keys = source[: reduction.keys]
        group = self.collections[reduction.source].group_by(*keys)
        value = "" if reduction.value is None else source[reduction.value]
        match reduction.op:
            case "count":
                result = group.count("= value")
            case "sum":
                result = with_origin(group.sum(**{"= value": value}), reduction, keys)
            case "mean":
                result = group.avg(**{"= value": value})
            case "variance":
                result = group.variance(value, "= value")
            case "median":
                result = group.median(value, "= value")
            case "min" | "max" if reduction.limit:
                values = group.collection.select(*keys, **{"= value": col(value)}).distinct()
                sign = "" if reduction.op == "min" else "-"
                result = values.group_by(*keys).first(reduction.limit, f"{sign}= value")
            case "min":
                result = group.min(value, "= value")
            case _:
                result = group.max(value, "= value")
        return result.select(**{name: col(of) for name, of in zip(result_columns, [*keys, "= value"], strict=True)})


def within_ranges(rows: Collection, relation: Relation) -> Collection:
    """Return rows of which those fail that have values out of the range of a small integer type."""
    if not any(column.range for column in relation.columns):
        return rows
    return rows.select(**{
        column.name: within_range(col(column.name), column.range, column.type) if column.range else col(column.name)
        for column in relation.columns
    })  # fmt: skip


def with_origin(sums: Collection, reduction: AggregateReduction, keys: list[str]) -> Collection:
    """Return sums of which the errors name the position of the aggregate and the group."""
    if not isinstance(sums.node, nodes.ReduceNode) or not reduction.at.source.text:
        return sums
    shown = tuple((VariableTerm(key).written, key) for key in keys)
    at = reduction.at
    origin = ExpressionOrigin("", str(at), at.excerpt(), shown, f"{at} {reduction.relation}")
    node = replace(sums.node, reduction=replace(sums.node.reduction, origin=origin))
    return type(sums)(sums.db, node)


def is_error(rule: Rule) -> bool:
    """Return whether a rule only reports errors and derives no rows."""
    return rule.role == "errors"


def base_relations(program: Program) -> list[str]:
    """Return the relations with rows from outside: read from files, stated as facts, or derived by no rule."""
    stated = {fact.relation for fact in program.facts}
    stated |= {directive.relation for directive in program.directives if directive.kind == "input"}
    derived = {rule.head.relation for rule in program.rules} | {reduction.relation for reduction in program.reductions}
    return [
        relation.name
        for relation in program.relations
        if relation.name in stated or not (relation.name in derived or relation.generated)
    ]


def schema_of(relation: Relation) -> Schema:
    """Return the schema of a relation; a relation without columns has one column that always holds 0."""
    return Schema.of({column.name: column_type(column.kind) for column in relation.columns} or {UNIT: int})

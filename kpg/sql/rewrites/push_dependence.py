"""Push the dependence of a relation on outer columns down, after Neumann and Kemper, "Unnesting Arbitrary Queries".

    left ⟕dependent right   =   left ⟕ (right for each value of the outer columns), equal in these values

Each node learns to compute its rows for all outer values at once, with the values in columns of its own. Where a filter
equates an outer expression with a value of the row, that value takes its place. Only where there is no equation, the
node is joined with the domain: the distinct values of the outer expressions on the left side. So a subquery that is
correlated by equations becomes a plain join, and any other query can be unnested as well.

    Filter, inner join    equations bind, other conditions wait for the join above (pending)
    Aggregate, TopRows    the outer values become keys; a group without keys has defaults for outer rows without a row
    Distinct, sets        the outer values become columns
    recursion             the outer values become columns of the variables
    outer joins           the right side is joined to the left side for equal outer values
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from kpg.sql.relational.relations import (
    Aggregate,
    BoundJoin,
    BoundRecursion,
    BoundRelation,
    Distinct,
    Filter,
    FunctionScan,
    Project,
    RecursiveVariable,
    SetOperation,
    TopRows,
    Values,
    VariableScan,
)
from kpg.sql.relational.scalars import Coalesce, Column, Constant, Scalar, conjuncts
from kpg.sql.rewrites.attached_relations import attach
from kpg.sql.rewrites.join_conditions import columns_of
from kpg.sql.rewrites.node_builders import copy_of, join, keep, project, same, value_of, where
from kpg.sql.rewrites.outer_domain import OuterDomain
from kpg.sql.rewrites.push_recursion import push_recursion
from kpg.sql.rewrites.relation_traversal import free_columns, map_call, nodes_of, scalars_of, substitute
from kpg.sql.rewrites.unnested_relation import (
    DefaultedColumn,
    UnnestedRelation,
    folded_null,
    marked,
    with_terms,
)


@dataclass
class DependencePusher:
    """Unnests the right side of one dependent join: all its relations, each once."""

    outer: frozenset[Column]
    domain: OuterDomain
    variables: dict[RecursiveVariable, tuple[RecursiveVariable, dict[Scalar, int]]] = field(default_factory=dict)
    done: dict[BoundRelation, UnnestedRelation] = field(default_factory=dict)
    complete_groups: dict[int, tuple[UnnestedRelation, UnnestedRelation]] = field(default_factory=dict)

    def push(self, node: BoundRelation) -> UnnestedRelation:
        """Return a relation that does not refer to outer columns."""
        if node not in self.done:
            if free_columns(node) & self.outer or self._reads_variable(node) or may_fail(node):
                method = getattr(self, f"_{type(node).__name__.lower()}")
                self.done[node] = method(node)
            else:
                self.done[node] = UnnestedRelation(node)
        return self.done[node]

    def _reads_variable(self, node: BoundRelation) -> bool:
        return any(isinstance(inner, VariableScan) and inner.variable in self.variables for inner in nodes_of(node))

    # Binding outer columns by the domain

    def missing(self, unnested: UnnestedRelation, scalars: Iterable[Scalar]) -> list[Scalar]:
        """Return the outer columns in some scalars that are not bound."""
        read = {column for scalar in scalars for column in columns_of(unnested.replaced(scalar)) & self.outer}
        return [value_of(column) for column in sorted(read, key=lambda column: column.name)]

    def with_bound(self, unnested: UnnestedRelation, outer: Sequence[Scalar]) -> UnnestedRelation:
        """Return the rows for each value in the domain of further outer expressions."""
        outer = [scalar for scalar in outer if scalar not in unnested.bound]
        if not outer:
            return unnested
        unnested = self.settled(unnested)
        values, columns = self.domain.of(outer)
        bound = {**unnested.bound, **columns}
        replaced = UnnestedRelation(unnested.relation, bound)
        pending = [replaced.replaced(term) for term in unnested.pending]
        ready = [term for term in pending if not columns_of(term) & self.outer]
        later = tuple(term for term in pending if columns_of(term) & self.outer)
        return UnnestedRelation(join("inner", values, unnested.relation, ready), bound, later)

    def settled(self, unnested: UnnestedRelation) -> UnnestedRelation:
        """Return the rows without defaults: the row of an empty group exists for each value of the domain."""
        if unnested.defaults is None:
            return unnested
        if id(unnested) not in self.complete_groups:
            self.complete_groups[id(unnested)] = (unnested, self._settled(unnested))
        return self.complete_groups[id(unnested)][1]

    def _settled(self, unnested: UnnestedRelation) -> UnnestedRelation:
        values, columns = self.domain.of(list(unnested.bound))
        relation, filled = marked(unnested)
        keys = [same(value_of(columns[key]), value_of(own)) for key, own in unnested.bound.items()]
        pairs = join("left", values, relation, keys)
        kept: dict[Column, Scalar] = {column: value_of(column) for column in values.columns}
        for column, value in filled.items():
            if column not in unnested.bound.values():
                kept[column] = UnnestedRelation(pairs, columns).replaced(value)
        return UnnestedRelation(project(pairs, kept), columns)

    def restricted(self, unnested: UnnestedRelation) -> UnnestedRelation:
        """Return only rows that belong to outer rows, for a node that fails on some rows."""
        unnested = self.complete(unnested)
        values, columns = self.domain.of(list(unnested.bound))
        keys = [same(value_of(own), value_of(columns[key])) for key, own in unnested.bound.items()]
        return UnnestedRelation(join("semi", unnested.relation, values, keys), unnested.bound)

    def complete(self, unnested: UnnestedRelation, scalars: Iterable[Scalar] = ()) -> UnnestedRelation:
        """Return the rows without defaults or pending conditions, with the outer columns of some scalars bound."""
        unnested = self.settled(unnested)
        unnested = self.with_bound(unnested, self.missing(unnested, (*unnested.pending, *scalars)))
        terms = [unnested.replaced(term) for term in unnested.pending]
        return UnnestedRelation(where(unnested.relation, terms), unnested.bound)

    # Sources

    def _values(self, node: Values) -> UnnestedRelation:
        scalars = [value for row in node.rows for value in row]
        outer = self.missing(UnnestedRelation(node), scalars)
        combined: UnnestedRelation | None = None
        for row in node.rows:
            values, bound = self.domain.of(outer)
            start = UnnestedRelation(values, bound)
            columns = {copy_of(column): start.replaced(value) for column, value in zip(node.columns, row, strict=True)}
            own = [value_of(bound[key]) for key in outer]
            part = project(values, {**columns, **{copy_of(value.column): value for value in own}})
            if combined is None:
                combined = UnnestedRelation(part)
            else:
                fresh = tuple(map(copy_of, part.columns))
                combined = UnnestedRelation(SetOperation(fresh, "union", True, combined.relation, part))
        assert combined is not None
        names = (*node.columns, *(Column("outer", scalar.type) for scalar in outer))
        renamed = dict(zip(names, map(value_of, combined.relation.columns), strict=True))
        return UnnestedRelation(
            project(combined.relation, renamed), dict(zip(outer, names[len(node.columns) :], strict=True))
        )

    def _functionscan(self, node: FunctionScan) -> UnnestedRelation:
        outer = self.missing(UnnestedRelation(node), node.arguments)
        values, bound = self.domain.of(outer)
        start = UnnestedRelation(values, bound)
        call = replace(node, arguments=tuple(map(start.replaced, node.arguments)))
        return UnnestedRelation(join("inner", values, call, dependent=True), bound)

    def _variablescan(self, node: VariableScan) -> UnnestedRelation:
        variable, positions = self.variables[node.variable]
        further = tuple(copy_of(column) for column in variable.columns[len(node.columns) :])
        scan = VariableScan((*node.columns, *further), variable)
        return UnnestedRelation(scan, {key: scan.columns[position] for key, position in positions.items()})

    # One input

    def _filter(self, node: Filter) -> UnnestedRelation:
        inner = self.settled(self.push(node.input))
        return with_terms(inner, conjuncts(node.condition), self.outer)

    def _project(self, node: Project) -> UnnestedRelation:
        inner = self.push(node.input)
        inner = self.with_bound(inner, self.missing(inner, node.values))
        if inner.defaults is not None:
            return self._project_with_defaults(node, inner)
        values: dict[Column, Scalar] = dict(zip(node.columns, map(inner.replaced, node.values), strict=True))
        bound = self._copied_bound(inner, values)
        read = {column for term in inner.pending for column in columns_of(term)}
        values |= {column: value_of(column) for column in inner.relation.columns if column in read}
        return UnnestedRelation(project(inner.relation, values), bound, inner.pending)

    def _copied_bound(self, inner: UnnestedRelation, values: dict[Column, Scalar]) -> dict[Scalar, Column]:
        """Add the values of bound outer expressions under new columns, and return these."""
        bound = {key: copy_of(column) for key, column in inner.bound.items()}
        values |= {bound[key]: value_of(column) for key, column in inner.bound.items()}
        return bound

    def _project_with_defaults(self, node: Project, inner: UnnestedRelation) -> UnnestedRelation:
        """Return computed columns of a relation with defaults: their defaults are computed as well."""
        assert inner.defaults is not None and not inner.pending
        values = {column: entry.found for column, entry in inner.defaults.items()}
        absent = {column: entry.default for column, entry in inner.defaults.items()}
        defaults = {
            column: DefaultedColumn(substitute(inner.replaced(value), values), folded_null(substitute(value, absent)))
            for column, value in zip(node.columns, node.values, strict=True)
        }
        return UnnestedRelation(inner.relation, inner.bound, (), defaults)

    def _distinct(self, node: Distinct) -> UnnestedRelation:
        inner = self.complete(self.push(node.input))
        rows = keep(inner.relation, dict.fromkeys((*node.columns, *inner.bound.values())))
        return UnnestedRelation(Distinct(rows.columns, rows), inner.bound)

    def _toprows(self, node: TopRows) -> UnnestedRelation:
        inner = self.complete(self.push(node.input), (key.value for key in node.order))
        rows = keep(inner.relation, dict.fromkeys((*node.columns, *inner.bound.values())))
        keys = tuple(dict.fromkeys((*node.keys, *inner.bound.values())))
        order = tuple(replace(key, value=inner.replaced(key.value)) for key in node.order)
        return UnnestedRelation(replace(node, columns=rows.columns, input=rows, keys=keys, order=order), inner.bound)

    def _aggregate(self, node: Aggregate) -> UnnestedRelation:
        assert node.sets is None, "grouping sets are expanded before"
        inner = self.complete(self.push(node.input), scalars_of(node))
        calls = tuple(map_call(call, inner.replaced) for call in node.aggregates)
        added = tuple(dict.fromkeys(column for column in inner.bound.values() if column not in node.keys))
        keys, own = node.keys + added, node.columns[len(node.keys) :]
        if node.keys or not inner.bound:
            columns = (*node.columns[: len(node.keys)], *added, *own)
            return UnnestedRelation(Aggregate(columns, inner.relation, keys, calls), inner.bound)
        defaults: dict[Column, DefaultedColumn] = {}
        held: dict[Column, Column] = {}
        for column, call in zip(own, node.aggregates, strict=True):
            counts = call.function.lowering == "count"
            zero = Constant(0 if counts else None, type=column.type)
            held[column] = copy_of(column) if counts else column
            defaults[column] = DefaultedColumn(value_of(held[column]), zero)
        aggregates = tuple(held[column] for column in own)
        return UnnestedRelation(Aggregate((*keys, *aggregates), inner.relation, keys, calls), inner.bound, (), defaults)

    # Two inputs

    def _boundjoin(self, node: BoundJoin) -> UnnestedRelation:
        if node.dependent:
            return self._lateral_function(node)
        if node.kind == "inner":
            return self._inner(node)
        if node.kind == "full":
            return self._full(node)
        left, right = self.settled(self.push(node.left)), self.push(node.right)
        terms = conjuncts(node.condition)
        if node.kind == "single":
            left = self.restricted(left)
        needed = [
            value_of(column)
            for scalar in (*right.bound, *right.pending, *terms, *default_values(right))
            for column in columns_of(scalar) & self.outer
        ]
        left = self.with_bound(left, self.missing(left, needed))
        outer: dict[Scalar, Scalar] = {key: value_of(column) for key, column in left.bound.items()}
        conditions = [left.replaced(term) for term in terms]
        attached = attach(node.kind, left.relation, right, outer, conditions, node.mark, self.settled)
        return UnnestedRelation(attached, left.bound, left.pending)

    def _inner(self, node: BoundJoin) -> UnnestedRelation:
        left, right = self.settled(self.push(node.left)), self.settled(self.push(node.right))
        shared = [
            same(value_of(left.bound[key]), value_of(right.bound[key])) for key in left.bound if key in right.bound
        ]
        both = UnnestedRelation(
            join("inner", left.relation, right.relation, shared),
            {**right.bound, **left.bound},
            left.pending + right.pending,
        )
        return with_terms(both, conjuncts(node.condition), self.outer)

    def _full(self, node: BoundJoin) -> UnnestedRelation:
        terms = conjuncts(node.condition)
        left, right = self.complete(self.push(node.left)), self.complete(self.push(node.right))
        needed = dict.fromkeys((*left.bound, *right.bound, *self.missing(UnnestedRelation(node), terms)))
        left, right = self.with_bound(left, list(needed)), self.with_bound(right, list(needed))
        shared = [same(value_of(left.bound[key]), value_of(right.bound[key])) for key in needed]
        joined = join("full", left.relation, right.relation, (*shared, *map(left.replaced, terms)))
        bound = {key: Column("outer", key.type) for key in needed}
        values: dict[Column, Scalar] = {column: value_of(column) for column in node.columns}
        for key, column in bound.items():
            sides = (value_of(left.bound[key]), value_of(right.bound[key]))
            values[column] = Coalesce(sides, type=key.type)
        return UnnestedRelation(project(joined, values), bound)

    def _lateral_function(self, node: BoundJoin) -> UnnestedRelation:
        """Unnest a function that is called for each row of its left side."""
        call = node.right
        assert isinstance(call, FunctionScan) and node.kind == "inner"
        left = self.settled(self.push(node.left))
        left = self.with_bound(left, self.missing(left, call.arguments))
        call = replace(call, arguments=tuple(map(left.replaced, call.arguments)))
        rows = join("inner", left.relation, call, dependent=True)
        return with_terms(UnnestedRelation(rows, left.bound, left.pending), conjuncts(node.condition), self.outer)

    def _setoperation(self, node: SetOperation) -> UnnestedRelation:
        sides = [self.complete(self.push(side)) for side in (node.left, node.right)]
        needed = list(dict.fromkeys((*sides[0].bound, *sides[1].bound)))
        rows: list[BoundRelation] = []
        for side, source in zip(sides, (node.left, node.right), strict=True):
            complete = self.with_bound(side, needed)
            columns = [*source.columns, *(complete.bound[key] for key in needed)]
            if len(set(columns)) < len(columns):  # an outer value that is a column of the result too
                values = {copy_of(column): value_of(column) for column in columns[len(source.columns) :]}
                kept: dict[Column, Scalar] = {column: value_of(column) for column in source.columns}
                rows.append(project(complete.relation, {**kept, **values}))
            else:
                rows.append(keep(complete.relation, columns))
        bound = {key: Column("outer", key.type) for key in needed}
        combined = replace(node, columns=(*node.columns, *bound.values()), left=rows[0], right=rows[1])
        return UnnestedRelation(combined, bound)

    def _boundrecursion(self, node: BoundRecursion) -> UnnestedRelation:
        return push_recursion(self, node)


def may_fail(relation: BoundRelation) -> bool:
    """Return whether a relation has a join that fails if a row has several matches."""
    return any(isinstance(node, BoundJoin) and node.kind == "single" for node in nodes_of(relation))


def default_values(unnested: UnnestedRelation) -> list[Scalar]:
    """Return the defaults of a relation."""
    return [] if unnested.defaults is None else [entry.default for entry in unnested.defaults.values()]

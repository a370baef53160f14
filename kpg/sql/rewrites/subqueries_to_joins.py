"""Turn subqueries inside scalars into dependent joins.

    WHERE EXISTS (q), WHERE x IN (q)            semi join          WHERE NOT EXISTS (q)      anti join
    EXISTS or IN elsewhere, NOT IN              mark join          (q) as a value            single join, or left join
                                                                                             if q has one row at most

Conjuncts of WHERE without subqueries that cannot fail filter the rows first, so a subquery is not asked, and cannot
fail, for other rows. A value that a CASE, AND or OR may not need is joined under the condition that it is needed. A
condition of an outer join that has subqueries becomes a filter of its right side, which then depends on the left.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from kpg.sql.functions.resolve import resolve_aggregate
from kpg.sql.relational.relations import (
    Aggregate,
    BoundJoin,
    BoundRelation,
    Distinct,
    Filter,
    FunctionScan,
    Project,
    Query,
    SetOperation,
    TopRows,
    Values,
    inputs,
)
from kpg.sql.relational.scalars import (
    AggregateCall,
    And,
    AnyRow,
    Case,
    Coalesce,
    Column,
    Constant,
    Exists,
    Not,
    Or,
    Scalar,
    SubqueryArray,
    SubqueryValue,
    conjunction,
    conjuncts,
    map_parts,
)
from kpg.sql.rewrites.copied_relations import copied
from kpg.sql.rewrites.node_builders import copy_of, join, keep, one_row, project, value_of, where
from kpg.sql.rewrites.relation_traversal import (
    free_columns,
    has_subquery,
    map_call,
    map_order,
    subqueries_of,
    with_inputs,
)
from kpg.sql.rewrites.scalar_properties import can_fail
from kpg.sql.rewrites.truth_terms import asserting
from kpg.sql.sql_types import BOOLEAN

SUBQUERY_KINDS: Final = (SubqueryValue, Exists, AnyRow, SubqueryArray)


def subqueries_to_joins(query: Query) -> Query:
    """Return a query without subqueries inside scalars."""
    return replace(query, relation=SubqueryRewriter().relation(query.relation))


@dataclass
class SubqueryRewriter:
    """Rewrites relations, each once."""

    done: dict[BoundRelation, BoundRelation] = field(default_factory=dict)

    def relation(self, node: BoundRelation) -> BoundRelation:
        """Return a relation without subqueries inside scalars."""
        if node not in self.done:
            self.done[node] = self._rewritten(node)
        return self.done[node]

    def _rewritten(self, node: BoundRelation) -> BoundRelation:
        new = with_inputs(node, tuple(map(self.relation, inputs(node))))
        match new:
            case Filter():
                return keep(self.filtered(new.input, conjuncts(new.condition)), new.columns)
            case BoundJoin() if has_subquery(new.condition):
                return self._join(new)
            case Project():
                scope = SubqueryScope(self, new.input)
                values = tuple(scope.scalar(value) for value in new.values)
                return replace(new, input=scope.input, values=values)
            case Aggregate():
                scope = SubqueryScope(self, new.input)
                calls = tuple(map_call(call, scope.scalar) for call in new.aggregates)
                return replace(new, input=scope.input, aggregates=calls)
            case TopRows():
                scope = SubqueryScope(self, new.input)
                order = map_order(new.order, scope.scalar)
                top = replace(new, columns=scope.input.columns, input=scope.input, order=order)
                return keep(top, new.columns)
            case Values() if any(has_subquery(value) for row in new.rows for value in row):
                return self._values(new)
            case FunctionScan() if any(map(has_subquery, new.arguments)):
                arguments = {Column("argument", value.type): value for value in new.arguments}
                row = self.relation(project(one_row(), arguments))
                call = replace(new, arguments=tuple(map(value_of, arguments)))
                return keep(join("inner", row, call, dependent=True), new.columns)
        return new

    def filtered(self, relation: BoundRelation, terms: tuple[Scalar, ...]) -> BoundRelation:
        """Return the rows on which all terms are true; they may have further columns.

        Terms that can fail come last, all together: a failure counts only where all other terms are true.
        """
        early = [term for term in terms if not has_subquery(term) and not can_fail(term)]
        relation = where(relation, early)
        late: list[Scalar] = []
        for term in terms:
            joined = self._as_join(relation, term)
            if joined is not None:
                relation = joined
            elif term not in early:
                late.append(term)
        scope = SubqueryScope(self, relation)
        conditions = [scope.scalar(term) for term in late]
        return where(scope.input, conditions)

    def _as_join(self, relation: BoundRelation, term: Scalar) -> BoundRelation | None:
        """Return the rows on which EXISTS, IN or NOT EXISTS is true; None for another term."""
        match term:
            case Exists():
                return join("semi", relation, self.relation(term.query), dependent=True)
            case Not(term=Exists() as inner):
                return join("anti", relation, self.relation(inner.query), dependent=True)
            case AnyRow() if not has_subquery(term.condition):
                return join("semi", relation, self.relation(term.query), (term.condition,), dependent=True)
        return None

    def _join(self, node: BoundJoin) -> BoundRelation:
        """Return a join with subqueries in its condition."""
        terms = conjuncts(node.condition)
        plain = tuple(term for term in terms if not has_subquery(term))
        rest = tuple(term for term in terms if has_subquery(term))
        if node.kind == "inner":
            pairs = join("inner", node.left, node.right, plain, dependent=node.dependent)
            return keep(self.filtered(pairs, rest), node.columns)
        if node.kind == "full":
            return self._full(node)
        assert node.kind != "mark", "the condition of a mark join has no subqueries"
        right = keep(self.filtered(node.right, terms), node.right.columns)
        return join(node.kind, node.left, right, dependent=True)

    def _full(self, node: BoundJoin) -> BoundRelation:
        """Return a full join as a left join, and the right rows without a match."""
        first, names = copied(replace(node, kind="left"))
        unmatched = replace(node, kind="anti", columns=node.right.columns, left=node.right, right=node.left)
        second, others = copied(unmatched)
        values: dict[Column, Scalar] = {}
        for column in node.columns:
            own = others.get(column)
            is_right = column in node.right.columns and own is not None
            values[Column(column.name, column.type)] = (
                value_of(own) if is_right and own is not None else Constant(None, type=column.type)
            )
        left = keep(self.relation(first), (names[column] for column in node.columns))
        right = project(self.relation(second), values)
        return SetOperation(node.columns, "union", True, left, right)

    def _values(self, node: Values) -> BoundRelation:
        """Return rows of scalars with subqueries: each row is a projection of the relation of one row."""
        rows = [
            self.relation(project(one_row(), dict(zip(map(copy_of, node.columns), row, strict=True))))
            for row in node.rows
        ]  # fmt: skip
        if len(rows) == 1:
            renamed = zip(node.columns, rows[0].columns, strict=True)
            return project(rows[0], {column: value_of(own) for column, own in renamed})
        combined = rows[0]
        for number, row in enumerate(rows[1:], 2):
            columns = node.columns if number == len(rows) else tuple(map(copy_of, node.columns))
            combined = SetOperation(columns, "union", True, combined, row)
        return combined


@dataclass
class SubqueryScope:
    """A relation, to which the subqueries of scalars over its rows are joined."""

    rewriter: SubqueryRewriter
    input: BoundRelation
    found: dict[Scalar, Scalar] = field(default_factory=dict)

    def scalar(self, scalar: Scalar, needed: Scalar | None = None) -> Scalar:
        """Return a scalar without subqueries; its value matters only where `needed` is true."""
        if not has_subquery(scalar):
            return scalar
        if isinstance(scalar, SUBQUERY_KINDS):
            if scalar not in self.found:
                self.found[scalar] = self._joined(scalar, needed)
            return self.found[scalar]
        match scalar:
            case Case():
                return self._case(scalar, needed)
            case And():  # a term matters where no other one is false
                plain = [asserting(negation(term)) for term in scalar.terms if not has_subquery(term)]
                return map_parts(scalar, lambda part: self.scalar(part, both(needed, *map(negation, plain))))
            case Or():  # a term matters where no other one is true
                plain = [asserting(term) for term in scalar.terms if not has_subquery(term)]
                return map_parts(scalar, lambda part: self.scalar(part, both(needed, *map(negation, plain))))
        return map_parts(scalar, lambda part: self.scalar(part, needed))

    def _case(self, scalar: Case, needed: Scalar | None) -> Scalar:
        branches: list[tuple[Scalar, Scalar]] = []
        for condition, value in scalar.branches:
            tested = self.scalar(condition, needed)
            branches.append((tested, self.scalar(value, both(needed, tested))))
            needed = both(needed, negation(asserting(tested)))
        return replace(scalar, branches=tuple(branches), otherwise=self.scalar(scalar.otherwise, needed))

    def _joined(self, scalar: Scalar, needed: Scalar | None) -> Scalar:
        """Join a subquery, and return its value as a column."""
        match scalar:
            case SubqueryValue():
                return self._value(scalar, needed)
            case SubqueryArray():
                return self._array(scalar)
            case Exists():
                mark = Column("exists", BOOLEAN)
                self.input = join("mark", self.input, self.rewriter.relation(scalar.query), mark=mark, dependent=True)
                return value_of(mark)
            case AnyRow():
                return self._any_row(scalar)
        raise AssertionError(type(scalar).__name__)

    def _value(self, scalar: SubqueryValue, needed: Scalar | None) -> Scalar:
        query = self.rewriter.relation(scalar.query)
        if scalar.column in self.input.columns:  # the subquery was joined before, for another scalar
            return value_of(scalar.column)
        if has_one_row_at_most(query):
            self.input = join("left", self.input, query, dependent=True)
        else:
            terms = () if needed is None else (asserting(needed),)
            self.input = join("single", self.input, query, terms, dependent=True)
        return value_of(scalar.column)

    def _array(self, scalar: SubqueryArray) -> Scalar:
        function = resolve_aggregate("array_agg", (scalar.column.type,)).function
        call = AggregateCall(function, (value_of(scalar.column),), scalar.type)
        array = Column("array", scalar.type)
        query = Aggregate((array,), self.rewriter.relation(scalar.query), (), (call,))
        self.input = join("left", self.input, query, dependent=True)
        return Coalesce((value_of(array), Constant([], type=scalar.type)), type=scalar.type)

    def _any_row(self, scalar: AnyRow) -> Scalar:
        query = self.rewriter.relation(scalar.query)
        condition = scalar.condition
        if has_subquery(condition):  # of the compared value, as in (SELECT …) IN (SELECT …)
            condition = map_parts(condition, lambda part: self._compared(part, query))
        mark = Column("in", BOOLEAN)
        self.input = join("mark", self.input, query, (condition,), mark=mark, dependent=True)
        return value_of(mark)

    def _compared(self, part: Scalar, query: BoundRelation) -> Scalar:
        assert not any(free_columns(inner) & set(query.columns) for inner in subqueries_of(part))
        return self.scalar(part)


def negation(term: Scalar) -> Scalar:
    """Return the negation of a term."""
    return Not(term, type=BOOLEAN)


def both(needed: Scalar | None, *terms: Scalar) -> Scalar | None:
    """Return the conjunction of terms, with the condition that was needed before."""
    every = terms if needed is None else (needed, *terms)
    return conjunction(every) if every else None


def has_one_row_at_most(relation: BoundRelation) -> bool:
    """Return whether a relation cannot have two rows, for any rows of the tables."""
    match relation:
        case Aggregate():
            return not relation.keys and (relation.sets is None or len(relation.sets) == 1)
        case Values():
            return len(relation.rows) <= 1
        case TopRows(limit=Constant(value=value)) if not relation.keys and not relation.ties:
            return value is not None and int(value) <= 1
        case Project() | Filter() | Distinct() | TopRows():
            return has_one_row_at_most(relation.input)
        case BoundJoin(kind="semi" | "anti" | "mark" | "single"):
            return has_one_row_at_most(relation.left)
        case BoundJoin(kind="inner" | "left"):
            return has_one_row_at_most(relation.left) and has_one_row_at_most(relation.right)
    return False

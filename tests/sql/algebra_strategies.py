"""Random relations of the bound algebra over three small tables, with subqueries and lateral joins if asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from hypothesis import strategies as st

from kpg.columns.functions import lit, when
from kpg.sql.functions.function import AggregateFunction, Function, TableFunction
from kpg.sql.relational import relations as r
from kpg.sql.relational import scalars as s
from kpg.sql.rewrites.source_facts import QueryFacts, SourceFacts
from kpg.sql.sql_types import BIGINT, BOOLEAN

TABLES = {"t": ("a", "b"), "u": ("a", "c"), "w": ("x",)}


def quotient(arguments: Sequence[Any], types: Any, result: Any) -> Any:
    """Build a quotient that fails for a divisor of zero, but not for null."""
    above, below = arguments
    null = lit(None).cast("int64?")
    return when(above.is_null() | below.is_null(), null).otherwise(above // below)


ARITHMETIC = {
    "+": Function("+", (BIGINT, BIGINT), BIGINT, lambda args, types, result: args[0] + args[1]),
    "*": Function("*", (BIGINT, BIGINT), BIGINT, lambda args, types, result: args[0] * args[1], total=True),
    "/": Function("/", (BIGINT, BIGINT), BIGINT, quotient),
}
COMPARISONS = {
    "=": Function("=", (BIGINT, BIGINT), BOOLEAN, lambda args, types, result: args[0] == args[1], total=True),
    "<>": Function("<>", (BIGINT, BIGINT), BOOLEAN, lambda args, types, result: args[0] != args[1], total=True),
    "<": Function("<", (BIGINT, BIGINT), BOOLEAN, lambda args, types, result: args[0] < args[1], total=True),
    ">=": Function(">=", (BIGINT, BIGINT), BOOLEAN, lambda args, types, result: args[0] >= args[1], total=True),
}
SERIES = TableFunction(
    "series", (BIGINT, BIGINT), lambda types: (BIGINT,), lambda a, b: [(n,) for n in range(a, b + 1)]
)
AGGREGATES = {
    "count": AggregateFunction("count", (), BIGINT, "count"),
    "count of": AggregateFunction("count", (BIGINT,), BIGINT, "count"),
    "sum": AggregateFunction("sum", (BIGINT,), BIGINT, "sum"),
    "min": AggregateFunction("min", (BIGINT,), BIGINT, "min"),
    "max": AggregateFunction("max", (BIGINT,), BIGINT, "max"),
}
TABLE_ROWS = st.fixed_dictionaries({
    name: st.lists(st.tuples(*[st.sampled_from([None, 0, 1, 2])] * len(fields)), max_size=4)
    for name, fields in TABLES.items()
})  # fmt: skip


KEYS = {"t": ("a",), "w": ("x",)}  # of the tables of `keyed_rows`; u has none


def keyed_rows() -> st.SearchStrategy[dict[str, list[tuple[Any, ...]]]]:
    """Generate rows of the tables such that the keys identify rows and are not null."""

    def keyed(contents: dict[str, list[tuple[Any, ...]]]) -> dict[str, list[tuple[Any, ...]]]:
        unique = {name: {row[0]: row for row in contents[name] if row[0] is not None} for name in KEYS}
        return {name: list(unique[name].values()) if name in KEYS else rows for name, rows in contents.items()}

    return TABLE_ROWS.map(keyed)


def keyed_facts() -> QueryFacts:
    """Return what is known of the tables of `keyed_rows`; u is said to be large, so that joins restrict its groups."""
    keyed = {name: SourceFacts(frozenset(key), key, rows=10) for name, key in KEYS.items()}
    return QueryFacts({**keyed, "u": SourceFacts(rows=1000)})


def value_of(column: s.Column) -> s.ColumnValue:
    """Return the value of a column."""
    return s.ColumnValue(column, type=column.type)


def constant(value: Any) -> s.Constant:
    """Return an integer or null."""
    return s.Constant(value, type=BIGINT)


def compare(op: str, left: s.Scalar, right: s.Scalar) -> s.Scalar:
    """Return a comparison."""
    return s.ScalarCall(COMPARISONS[op], (left, right), type=BOOLEAN)


def scan(name: str) -> r.Scan:
    """Return a new scan of a table."""
    return r.Scan(tuple(s.Column(field, BIGINT) for field in TABLES[name]), name, TABLES[name])


@dataclass
class AlgebraGenerator:
    """Draws relations. With `subqueries`, scalars may hold subqueries and joins may be dependent."""

    random: Random
    subqueries: bool

    def choose(self, *options: Any) -> Any:
        """Draw one of some options."""
        return self.random.choice(options)

    def flip(self, one_in: int = 2) -> bool:
        """Return true once in so many times."""
        return self.random.randrange(one_in) == 0

    def query(self, depth: int = 3) -> r.Query:
        """Draw a query."""
        relation = self.relation(depth, ())
        return r.Query(relation, tuple(f"c{number}" for number in range(len(relation.columns))))

    def relation(self, depth: int, outer: Sequence[s.Column]) -> r.BoundRelation:
        """Draw a relation that may refer to outer columns."""
        if depth <= 0:
            return self.source(outer)
        kind = self.choose(
            "filter",
            "filter",
            "project",
            "join",
            "join",
            "aggregate",
            "set",
            "distinct",
            "top",
            "source",
            "function",
            "recursion",
        )
        draw = getattr(self, kind)
        relation: r.BoundRelation = draw(outer) if kind == "source" else draw(depth - 1, outer)
        return relation

    def source(self, outer: Sequence[s.Column]) -> r.BoundRelation:
        """Draw a table or constant rows."""
        if not self.flip(6):
            return scan(self.choose(*TABLES))
        rows = tuple((self.number((), outer, 0),) for _ in range(self.choose(0, 1, 2)))
        return r.Values((s.Column("v", BIGINT),), rows)

    def function(self, depth: int, outer: Sequence[s.Column]) -> r.BoundRelation:
        """Draw a call of a function of rows, of constants or of outer columns."""
        arguments = (constant(self.choose(0, 1)), self.number((), outer, 0))
        columns, ordinality = (s.Column("g", BIGINT),), None
        if self.flip():
            ordinality = s.Column("n", BIGINT)
            columns = (*columns, ordinality)
        return r.FunctionScan(columns, SERIES, arguments, ordinality)

    def recursion(self, depth: int, outer: Sequence[s.Column]) -> r.BoundRelation:
        """Draw a recursion over the rows of a relation and a table."""
        base = self.relation(depth, outer)
        variable = r.RecursiveVariable("v", tuple(s.Column("v", BIGINT) for _ in base.columns))
        seen = r.VariableScan(tuple(s.Column("v", BIGINT) for _ in base.columns), variable)
        table = scan("t")
        step: r.BoundRelation = r.BoundJoin(
            (*seen.columns, *table.columns),
            "inner",
            seen,
            table,
            s.And(
                (
                    compare("=", value_of(seen.columns[0]), value_of(table.columns[0])),
                    self.condition(seen.columns, outer, 0),
                ),
                type=BOOLEAN,
            ),
        )
        step = r.Project(
            tuple(s.Column("v", BIGINT) for _ in base.columns),
            step,
            (value_of(table.columns[1]), *map(value_of, seen.columns[1:])),
        )
        kind = self.choose("union", "union", "sum", "replace")
        limit, fails = (None, True) if kind == "union" else (self.choose(1, 2, 3), False)
        if kind == "replace":
            columns = tuple(s.Column("v", BIGINT) for _ in base.columns)
            both = r.SetOperation(columns, "union", self.flip(), base, step)
            definition = r.Definition(variable, "replace", None, both)
        else:
            definition = r.Definition(variable, kind, base, step)
        body = r.VariableScan(tuple(s.Column("v", BIGINT) for _ in base.columns), variable)
        return r.BoundRecursion(body.columns, (definition,), body, limit, fails)

    def filter(self, depth: int, outer: Sequence[s.Column]) -> r.BoundRelation:
        """Draw a filter."""
        inner = self.relation(depth, outer)
        return r.Filter(inner.columns, inner, self.condition(inner.columns, outer, depth))

    def project(self, depth: int, outer: Sequence[s.Column]) -> r.BoundRelation:
        """Draw a projection that keeps some columns and computes others."""
        inner = self.relation(depth, outer)
        kept = [column for column in inner.columns if self.flip()]
        computed = [self.number(inner.columns, outer, depth) for _ in range(0 if kept else 1)]
        computed += [self.number(inner.columns, outer, depth)] if self.flip() else []
        columns = (*kept, *(s.Column("p", BIGINT) for _ in computed))
        return r.Project(columns, inner, (*map(value_of, kept), *computed))

    def distinct(self, depth: int, outer: Sequence[s.Column]) -> r.BoundRelation:
        """Draw a Distinct."""
        inner = self.relation(depth, outer)
        return r.Distinct(inner.columns, inner)

    def top(self, depth: int, outer: Sequence[s.Column]) -> r.BoundRelation:
        """Draw the first rows of groups."""
        inner = self.relation(depth, outer)
        keys = tuple(column for column in inner.columns[:1] if self.flip())
        order = tuple(s.SortKey(value_of(column), self.flip(), self.flip()) for column in inner.columns if self.flip())
        limit = self.choose(None, constant(0), constant(1), constant(2))
        offset = self.choose(None, None, constant(1))
        return r.TopRows(inner.columns, inner, keys, order, limit, offset, self.choose(False, False, True))

    def aggregate(self, depth: int, outer: Sequence[s.Column]) -> r.BoundRelation:
        """Draw groups."""
        inner = self.relation(depth, outer)
        keys = tuple(column for column in inner.columns if self.flip(3))
        calls = tuple(self.call(inner.columns, outer) for _ in range(self.choose(1, 1, 2, 0) if keys else 1))
        results = tuple(s.Column(call.function.name, BIGINT) for call in calls)
        if keys and self.flip(4):
            return self.grouping_sets(inner, keys, calls, results)
        shown = keys if self.flip() else tuple(s.Column(key.name, BIGINT) for key in keys)
        return r.Aggregate((*shown, *results), inner, keys, calls)

    def grouping_sets(self, inner: r.BoundRelation, keys: Any, calls: Any, results: Any) -> r.BoundRelation:
        """Return groups by random sets of the keys."""
        indices = tuple(range(len(keys)))
        sets = tuple(tuple(i for i in indices if self.flip()) for _ in range(self.choose(1, 2, 3)))
        fresh = tuple(s.Column(key.name, BIGINT) for key in keys)
        columns = (*fresh, *results, s.Column("grouping", BIGINT))
        return r.Aggregate(columns, inner, keys, calls, sets, (indices,))

    def call(self, columns: Sequence[s.Column], outer: Sequence[s.Column]) -> s.AggregateCall:
        """Draw an aggregate."""
        name = self.choose(*AGGREGATES)
        arguments = () if name == "count" else (self.number(columns, outer, 0),)
        condition = self.condition(columns, outer, 0) if self.flip(4) else None
        distinct = bool(arguments) and self.flip(4)
        return s.AggregateCall(AGGREGATES[name], arguments, BIGINT, distinct, condition)

    def set(self, depth: int, outer: Sequence[s.Column]) -> r.BoundRelation:
        """Draw a set operation."""
        sides = [self.relation(depth, outer) for _ in range(2)]
        width = min(len(side.columns) for side in sides)
        left, right = (
            r.Project(side.columns[:width], side, tuple(map(value_of, side.columns[:width]))) for side in sides
        )
        columns = tuple(s.Column("s", BIGINT) for _ in range(width))
        kind = self.choose("union", "union", "intersect", "except")
        return r.SetOperation(columns, kind, self.flip(), left, right)

    def join(self, depth: int, outer: Sequence[s.Column]) -> r.BoundRelation:
        """Draw a join, perhaps a lateral one."""
        left = self.relation(depth, outer)
        dependent = self.subqueries and self.flip()
        right = self.relation(depth, (*outer, *left.columns) if dependent else outer)
        kind = self.choose("inner", "inner", "left", "full", "semi", "anti", "mark", "single")
        if dependent and kind == "full":
            kind = "left"
        both = (*left.columns, *right.columns)
        condition = self.condition(both, outer, depth if self.subqueries and kind not in ("mark", "full") else 0)
        if kind in ("semi", "anti"):
            return r.BoundJoin(left.columns, kind, left, right, condition, dependent=dependent)
        if kind == "mark":
            mark = s.Column("mark", BOOLEAN)
            marked = r.BoundJoin((*left.columns, mark), kind, left, right, condition, mark, dependent)
            return self.marked(marked, mark)
        return r.BoundJoin(both, kind, left, right, condition, dependent=dependent)

    def marked(self, join: r.BoundJoin, mark: s.Column) -> r.BoundRelation:
        """Return a mark join with its mark as a number, since all columns are numbers here."""
        value = s.Case(
            ((value_of(mark), constant(1)), (s.IsNull(value_of(mark), type=BOOLEAN), constant(None))),
            constant(0),
            type=BIGINT,
        )
        columns = (*join.left.columns, s.Column("marked", BIGINT))
        return r.Project(columns, join, (*map(value_of, join.left.columns), value))

    # Scalars

    def number(self, columns: Sequence[s.Column], outer: Sequence[s.Column], depth: int) -> s.Scalar:
        """Draw a number."""
        kind = self.choose("column", "column", "outer", "constant", "call", "case", "coalesce", "subquery")
        if kind == "subquery" and self.subqueries and depth > 0:
            query = self.relation(depth - 1, (*outer, *columns))
            return s.SubqueryValue(query, self.choose(*query.columns), type=BIGINT)
        if kind == "outer" and outer:
            return value_of(self.choose(*outer))
        if kind in ("column", "subquery", "outer") and columns:
            return value_of(self.choose(*columns))
        if kind == "call":
            if self.flip(6):  # fails where the divisor is zero
                pair = (self.number(columns, outer, 0), self.number(columns, outer, 0))
                return s.ScalarCall(ARITHMETIC["/"], pair, type=BIGINT)
            pair = (self.number(columns, outer, 0), constant(self.choose(1, 2)))
            return s.ScalarCall(ARITHMETIC[self.choose("+", "*")], pair, type=BIGINT)
        if kind == "case":
            branch = (self.condition(columns, outer, 0), self.number(columns, outer, 0))
            return s.Case((branch,), self.number(columns, outer, 0), type=BIGINT)
        if kind == "coalesce" and columns:
            return s.Coalesce((value_of(self.choose(*columns)), constant(7)), type=BIGINT)
        return constant(self.choose(None, 0, 1, 2))

    def condition(self, columns: Sequence[s.Column], outer: Sequence[s.Column], depth: int) -> s.Scalar:
        """Draw a condition; half of them compare columns for equality."""
        kind = self.choose("equal", "equal", "compare", "and", "or", "not", "null", "exists", "any")
        everything = (*columns, *outer)
        if kind in ("exists", "any") and self.subqueries and depth > 0:
            query = self.relation(depth - 1, everything)
            if kind == "exists":
                return s.Exists(query, type=BOOLEAN)
            op = self.choose("=", "=", "<")
            compared = compare(op, self.number(columns, outer, 0), value_of(self.choose(*query.columns)))
            return s.AnyRow(query, compared, type=BOOLEAN)
        if kind in ("equal", "exists", "any") and len(everything) > 1:
            return compare("=", value_of(self.choose(*everything)), value_of(self.choose(*everything)))
        if kind == "and":
            return s.And((self.condition(columns, outer, depth), self.condition(columns, outer, 0)), type=BOOLEAN)
        if kind == "or":
            return s.Or((self.condition(columns, outer, depth), self.condition(columns, outer, 0)), type=BOOLEAN)
        if kind == "not":
            return s.Not(self.condition(columns, outer, depth), type=BOOLEAN)
        if kind == "null":
            return s.IsNull(self.number(columns, outer, 0), type=BOOLEAN)
        op = self.choose(*COMPARISONS)
        return compare(op, self.number(columns, outer, depth), self.number(columns, outer, 0))


def queries(subqueries: bool, depth: int = 3) -> st.SearchStrategy[r.Query]:
    """Return random queries. They are drawn by seed: trees of this size take too long to shrink."""
    return st.integers(0, 2**32).map(lambda seed: AlgebraGenerator(Random(seed), subqueries).query(depth))


def joined_tables() -> st.SearchStrategy[r.Query]:
    """Return inner joins of three to five tables, each connected with an earlier one, with filters and other terms."""
    return st.integers(0, 2**32).map(_joined_tables)


def _joined_tables(seed: int) -> r.Query:
    random = Random(seed)
    relation: r.BoundRelation = scan("t")
    for _ in range(random.choice([2, 2, 3, 4])):
        other: r.BoundRelation = scan(random.choice(list(TABLES)))
        if random.random() < 0.3:
            other = r.Filter(other.columns, other, compare("<", value_of(other.columns[0]), constant(2)))
        terms = [compare("=", value_of(random.choice(relation.columns)), value_of(other.columns[0]))]
        if random.random() < 0.3:
            terms.append(compare("<>", value_of(random.choice(relation.columns)), value_of(other.columns[-1])))
        columns = (*relation.columns, *other.columns)
        relation = r.BoundJoin(columns, "inner", relation, other, s.conjunction(tuple(terms)))
    return r.Query(relation, tuple(f"c{number}" for number in range(len(relation.columns))))

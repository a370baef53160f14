"""Collections: changing multisets of rows, and the operators on them.

A collection is a description; nothing runs until `output`, `arrange` or `probe` installs a dataflow. A method
therefore costs only the check of its columns and types. Methods are named as in pandas, polars and Spark where those
agree: select, filter, join, group_by, distinct, concat.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn

from kpg.api.join_forms import JoinPlan, join_as, name_of_column
from kpg.api.uncopyable import Uncopyable
from kpg.columns.bind import bind, bind_condition, name_of
from kpg.columns.expression import ColumnReference, Expression, wrap
from kpg.columns.lane_values import MAX
from kpg.columns.schema import INT64, Schema
from kpg.errors import BadPlan, TypeMismatch, UndefinedName
from kpg.plan import nodes

if TYPE_CHECKING:
    from kpg.api.contracts import Arrangement, Database, Output, Probe
    from kpg.api.group import Group

On = str | Sequence[str] | Mapping[str, str]

LEFT_OVER: Final = " left over"  # a column with the difference of two counts

# Of outputs, and of the tables of other libraries: a user who asks a collection for these wants its rows.
READS_OF_OUTPUTS: Final = frozenset(
    "rows snapshot to_pandas to_polars to_arrow changes take_changes on_change capture frontier collect head show "
    "to_list to_dict to_pylist".split()
)


class Collection(Uncopyable):
    """A changing multiset of rows."""

    kind_in_errors = "a collection"
    label: ClassVar[str] = "Collection"  # what users call this kind of collection

    def __init__(self, db: Database, node: nodes.PlanNode) -> None:
        self.db = db
        self.node = node

    @property
    def schema(self) -> Schema:
        """The columns, in order."""
        return self.node.schema

    def __repr__(self) -> str:
        return f"{self.label}{self.schema!r}"

    if not TYPE_CHECKING:  # a type checker would believe that every name exists

        def __getattr__(self, name: str) -> NoReturn:
            if name in READS_OF_OUTPUTS:
                raise AttributeError(
                    f"this {type(self).label} is a description, and has no {name!r}: install it first, "
                    f"as in answer = collection.output(), then read the answer",
                    name=name,
                    obj=self,
                )
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def _repr_html_(self) -> str:
        from kpg.api.notebook_html import html_collection

        return html_collection(self)

    # One row at a time

    def select(self, /, *columns: str | Expression, **named: Any) -> Collection:
        """Keep or compute columns: names, expressions, or name=expression."""
        pairs = [(self._name(column), wrap_column(column)) for column in columns]
        pairs += [(name, wrap_column(value)) for name, value in named.items()]
        if not pairs:
            raise BadPlan("select() of no columns", hint="Name the columns to keep.")
        bound = [(name, bind(expression, self.schema, self.db.symbols).type) for name, expression in pairs]
        expressions = tuple(expression for _, expression in pairs)
        return self._make(nodes.SelectNode(Schema.of(bound), self.node.loops, self.node, expressions))

    map = select

    def with_columns(self, /, **named: Any) -> Collection:
        """Keep all columns, and replace or add some."""
        kept = {name: ColumnReference(name) for name in self.schema.names}
        return self.select(**{**kept, **named})

    def drop(self, *columns: str) -> Collection:
        """Keep all columns but some."""
        if not columns:
            raise BadPlan("drop() of no columns", hint="Name the columns to leave out.")
        self.schema.select(columns)
        return self.select(*[name for name in self.schema.names if name not in columns])

    def rename(self, /, **names: str) -> Collection:
        """Rename columns: rename(old="new")."""
        schema = self.schema.rename(names)
        return self.select(**dict(zip(schema.names, map(ColumnReference, self.schema.names), strict=True)))

    def filter(self, condition: Any) -> Collection:
        """Keep the rows on which a condition is true: neither false nor null."""
        bind_condition(wrap(condition), self.schema, self.db.symbols)
        return self._make(nodes.FilterNode(self.schema, self.node.loops, self.node, wrap(condition)))

    def flat_map(self, function: Callable[..., Any], /, **columns: Any) -> Collection:
        """Replace each row by any number of rows: `function(table)` returns (positions, new table), in Arrow.

        `positions` holds, for each new row, the number of the old row that it came from and takes time and diff from.
        """
        from kpg.api.arrow_functions import ArrowFunction

        schema = Schema.of(columns)
        on_lanes = ArrowFunction(function, self.schema, schema, self.db.symbols)
        label = getattr(function, "__name__", "function")
        return self._make(nodes.FlatMapNode(schema, self.node.loops, self.node, on_lanes, label))

    def negate(self) -> Collection:
        """Negate the count of every row."""
        return self._make(nodes.NegateNode(self.schema, self.node.loops, self.node))

    def explode(self, column: str) -> Collection:
        """Repeat each row as often as the integer in a column says, and drop that column."""
        if self.schema.type_of(column) != INT64:
            raise TypeMismatch(f"explode() needs a whole number, not {self.schema.type_of(column)}")
        rest = self.schema.select([name for name in self.schema.names if name != column])
        return self._make(nodes.ExplodeNode(rest, self.node.loops, self.node, column))

    def delay(self, until: Any) -> Collection:
        """Delay each row to the epoch that an expression computes; inside a loop, to that round."""
        expression = wrap(until)
        if bind(expression, self.schema, self.db.symbols).type != INT64:
            raise TypeMismatch("delay() needs a whole number", hint="An epoch, or a round inside a loop.")
        return self._make(nodes.DelayNode(self.schema, self.node.loops, self.node, expression, -1))

    def inspect(self, function: Callable[[tuple[Any, ...], Any, int], Any] = print) -> Collection:
        """Keep all rows, and call `function(row, time, diff)` with each update that passes."""
        from kpg.api.changes import EachChange

        on_updates = EachChange(self.db, self.schema, function)
        return self._make(nodes.InspectNode(self.schema, self.node.loops, self.node, on_updates))

    # Several collections

    def concat(self, *others: Collection) -> Collection:
        """Add the counts of equal rows of these collections; columns must agree in name and type."""
        from kpg.api.recursion import check_same_columns

        for other in others:
            check_same_columns(other.schema, self.schema)
        inputs = (self.node, *[other.node for other in others])
        return self._make(nodes.ConcatNode(self.schema, _loops(*inputs), inputs))

    def subtract(self, other: Collection) -> Collection:
        """Subtract the counts of the other collection's rows."""
        return self.concat(other.negate())

    def join(
        self,
        other: Collection,
        on: On | None = None,
        how: str = "inner",
        *,
        suffix: str = "_right",
        nulls_equal: bool = True,
        where: Any = None,
    ) -> Collection:
        """Pair the rows with equal keys: `on` is a column, some columns, or {column here: column of the other}.

        how          "inner"; "left", "right" and "full" keep the rows without a match, with null in the columns of the
                     other side; "semi" and "anti" keep the rows of this side with and without a match; "cross" pairs
                     all rows
        suffix       appended to a column of `other` whose name is taken; a key with one name appears once
        nulls_equal  whether null equals null in the key, as in `distinct` and `group_by`; in SQL it does not
        where        a condition on pairs, in terms of the columns of the inner join; without `on` the only one
        """
        if on is None and where is None and how != "cross":
            raise BadPlan("join() without columns", hint='Name them with on=, give a condition, or choose how="cross".')
        pairs = self._pairs(other, () if on is None else on)
        condition = None if where is None else wrap(where)
        return join_as(how, JoinPlan(self, other, pairs, suffix, nulls_equal, condition))

    def semijoin(self, other: Collection, on: On) -> Collection:
        """Keep the rows with a key that occurs in the other collection, with their own counts."""
        return self.join(other, on, "semi")

    def antijoin(self, other: Collection, on: On) -> Collection:
        """Keep the rows with a key that does not occur in the other collection."""
        return self.join(other, on, "anti")

    def intersect(self, other: Collection) -> Collection:
        """Keep the rows that occur in the other collection, by all columns."""
        return self.semijoin(other, on=self.schema.names)

    def union(self, *others: Collection) -> Collection:
        """Keep each row that occurs in one of the collections once; `concat` keeps all copies."""
        return self.concat(*others).distinct()

    def intersect_all(self, other: Collection) -> Collection:
        """Keep each row as often as it occurs in both collections: the lesser of its counts."""
        return self.subtract(self.except_all(other))

    def except_all(self, other: Collection) -> Collection:
        """Remove the other's rows from this one's, copy by copy: the difference of the counts, where it is positive."""
        left_over = self.subtract(other).count(*self.schema.names, name=LEFT_OVER)
        return left_over.filter(ColumnReference(LEFT_OVER) > 0).explode(LEFT_OVER)

    # Groups

    def group_by(self, *keys: str | Expression, **named: Any) -> Group:
        """Group rows with equal keys, to count, sum, or reduce them; with no keys all rows are one group.

        A key is a column, or an expression with a name: group_by("town", decade=col("age") // 10).
        """
        from kpg.api.group import Group

        names = [*map(self._name, keys), *named]
        repeated = next((name for at, name in enumerate(names) if name in names[:at]), None)
        if repeated is not None:
            raise BadPlan(f"two keys of the group are called {repeated!r}", hint="Name each key once.")
        written = dict(zip(names, map(wrap_column, (*keys, *named.values())), strict=True))
        computed = {name: key for name, key in written.items() if name_of_column(key) != name}
        for name in computed:
            if name in self.schema.names:
                raise BadPlan(f"the key {name!r} has the name of another column", hint="Give it a name of its own.")
        self.schema.select(name for name in written if name not in computed)
        return Group(self.with_columns(**computed) if computed else self, tuple(written))

    def aggregate(self, /, **aggregates: Any) -> Collection:
        """Aggregate all rows: one row, also if there are none; then counts are 0, and other aggregates are null.

        The aggregates are those of `group_by(...).aggregate`.
        """
        from kpg.api.aggregate_plan import aggregate_all

        return aggregate_all(self, aggregates)

    def count(self, *keys: str, name: str = "count") -> Collection:
        """Count the rows of each group: the result has the keys and a column `count`."""
        return self.group_by(*keys).count(name)

    def distinct(self) -> Collection:
        """Keep each row with a positive count once."""
        return self.threshold(1)

    def threshold(self, at_least: int) -> Collection:
        """Keep each row with a count of at least `at_least` once."""
        if at_least < 1:
            raise BadPlan(f"threshold() needs at least 1, not {at_least}", detail="Absent rows have the count 0.")
        if at_least > MAX:
            raise BadPlan(f"threshold() takes numbers below 2^63, not {at_least}")
        reduction = nodes.ReductionSpec("presence", at_least=at_least)
        return self._make(nodes.ReduceNode(self.schema, self.node.loops, self.node, self.schema.names, reduction))

    def consolidate(self) -> Collection:
        """Sum the diffs of equal rows at one time before they are passed on."""
        return self._make(nodes.ConsolidateNode(self.schema, self.node.loops, self.node))

    # Recursion

    def iterate(
        self, step: Callable[[Collection], Collection], *, name: str = "iterate", max_rounds: int | None = None
    ) -> Collection:
        """Compute the fixed point of `step`, starting from this collection."""
        loop = self.db.loop(name, max_rounds)
        variable = loop.variable(self)
        result = step(variable)
        if not isinstance(result, Collection):
            raise BadPlan(f"the step of {name} returned {type(result).__name__}", hint="Return a collection.")
        variable.set(result)
        return loop.leave(result)

    # Installing

    def arrange(self, *keys: str) -> Arrangement:
        """Install an index by some columns, shared by all queries that join or group by them.

        Inside a loop it is part of the query: its operators share it, and it cannot be read from outside.
        """
        self.schema.select(keys)
        if self.node.loops:
            from kpg.api.loop_arrangement import LoopArrangement

            return LoopArrangement(self.db, nodes.ArrangeNode(self.schema, self.node.loops, self.node, keys))
        name = f"{getattr(self, 'name', 'collection')} by {', '.join(keys)}"
        return self.db.installer.arrangement(self.node, name, keys)

    def output(self, name: str | None = None, *, keep: bool = True, replace: bool = False) -> Output:
        """Install this collection as an answer: read it as of a time, or follow its changes.

        With keep=False it keeps no rows, and only its changes can be followed. With replace=True it takes the place of
        the output of that name, which is released. An output without a name is released when no variable holds it.
        """
        self._require_outside("output")
        return self.db.installer.output(self.node, name, keep, replace)

    def probe(self) -> Probe:
        """Install this collection only to follow its progress."""
        self._require_outside("probe")
        return self.db.installer.probe(self.node)

    # Inside

    def _make(self, node: nodes.PlanNode) -> Collection:
        return Collection(self.db, node)

    def _name(self, column: str | Expression) -> str:
        if isinstance(column, str):
            return column
        name = name_of(column)
        if name is None:
            raise UndefinedName(
                f"the column {column!r} has no name", hint="Write select(name=expression) or expression.named(...)."
            )
        return name

    def _pairs(self, other: Collection, on: On) -> tuple[tuple[str, str], ...]:
        if isinstance(on, str):
            on = (on,)
        pairs = tuple(on.items()) if isinstance(on, Mapping) else tuple((name, name) for name in on)
        for left, right in pairs:
            left_type, right_type = self.schema.type_of(left), other.schema.type_of(right)
            if not left_type.same(right_type):
                raise TypeMismatch(
                    f"cannot join {left} with {right}",
                    detail=f"{left} is {left_type}, {right} is {right_type}.",
                    hint="cast() one of them first.",
                )
        return pairs

    def _require_outside(self, what: str) -> None:
        if self.node.loops:
            names = ", ".join(sorted(loop.name for loop in self.node.loops))
            raise BadPlan(f"{what}() of a collection inside {names}", hint="Leave the loop first, with leave().")


def wrap_column(value: Any) -> Expression:
    """Return an expression; a string is the name of a column."""
    return ColumnReference(value) if isinstance(value, str) else wrap(value)


def _loops(*inputs: nodes.PlanNode) -> frozenset[nodes.Loop]:
    return frozenset[nodes.Loop]().union(*[node.loops for node in inputs])

"""Collections: changing multisets of rows, and what can be made of them.

A collection is a description; nothing runs until `output`, `arrange` or `probe` installs a dataflow. Methods read as
in pandas, polars and Spark where those agree: select, filter, join, group_by, distinct, concat.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kpg.columns.bind import bind, bind_condition, name_of
from kpg.columns.expression import ColumnReference, Expression, wrap
from kpg.columns.schema import INT64, Schema
from kpg.errors import BadPlan, TypeMismatch, UndefinedName
from kpg.plan import nodes

if TYPE_CHECKING:
    from kpg.api.contracts import Arrangement, Database, Output, Probe
    from kpg.api.group import Group

On = str | Sequence[str] | Mapping[str, str]


class Collection:
    """A changing multiset of rows."""

    def __init__(self, db: Database, node: nodes.PlanNode) -> None:
        self.db = db
        self.node = node

    @property
    def schema(self) -> Schema:
        """The columns, in order."""
        return self.node.schema

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self.schema!r}"

    def _repr_html_(self) -> str:
        from kpg.api.notebook_html import html_collection

        return html_collection(self)

    # One row at a time

    def select(self, /, *columns: str | Expression, **named: Any) -> Collection:
        """Columns kept or computed: names, expressions, or name=expression."""
        pairs = [(self._name(column), wrap_column(column)) for column in columns]
        pairs += [(name, wrap_column(value)) for name, value in named.items()]
        if not pairs:
            raise BadPlan("select() of no columns", hint="Name the columns to keep.")
        bound = [(name, bind(expression, self.schema, self.db.symbols).type) for name, expression in pairs]
        expressions = tuple(expression for _, expression in pairs)
        return self._make(nodes.SelectNode(Schema.of(bound), self.node.loops, self.node, expressions))

    map = select

    def with_columns(self, /, **named: Any) -> Collection:
        """All columns, some replaced or added."""
        kept = {name: ColumnReference(name) for name in self.schema.names}
        return self.select(**{**kept, **named})

    def rename(self, /, **names: str) -> Collection:
        """The same rows, columns renamed: rename(old="new")."""
        schema = self.schema.rename(names)
        return self.select(**dict(zip(schema.names, map(ColumnReference, self.schema.names), strict=True)))

    def filter(self, condition: Any) -> Collection:
        """The rows on which a condition is true: neither false nor null."""
        bind_condition(wrap(condition), self.schema, self.db.symbols)
        return self._make(nodes.FilterNode(self.schema, self.node.loops, self.node, wrap(condition)))

    def flat_map(self, function: Callable[..., Any], /, **columns: Any) -> Collection:
        """Any number of rows from each: `function(table)` gets an Arrow table and returns (positions, new table).

        `positions` says for each new row which old row it came from, so that its time and diff are known.
        """
        from kpg.api.arrow_functions import ArrowFunction

        schema = Schema.of(columns)
        lanes = ArrowFunction(function, self.schema, schema, self.db.symbols)
        label = getattr(function, "__name__", "function")
        return self._make(nodes.FlatMapNode(schema, self.node.loops, self.node, lanes, label))

    def negate(self) -> Collection:
        """Every row as often fewer as it was more."""
        return self._make(nodes.NegateNode(self.schema, self.node.loops, self.node))

    def explode(self, column: str) -> Collection:
        """As many copies of each row as a whole number in a column says; that column is dropped."""
        if self.schema.type_of(column) != INT64:
            raise TypeMismatch(f"explode() needs a whole number, not {self.schema.type_of(column)}")
        rest = self.schema.select([name for name in self.schema.names if name != column])
        return self._make(nodes.ExplodeNode(rest, self.node.loops, self.node, column))

    def delay(self, until: Any) -> Collection:
        """Each row no earlier than the epoch that an expression says; inside a loop, than that round."""
        expression = wrap(until)
        if bind(expression, self.schema, self.db.symbols).type != INT64:
            raise TypeMismatch("delay() needs a whole number", hint="An epoch, or a round inside a loop.")
        return self._make(nodes.DelayNode(self.schema, self.node.loops, self.node, expression, -1))

    def inspect(self, function: Callable[[tuple[Any, ...], Any, int], Any] = print) -> Collection:
        """The same rows; `function(row, time, diff)` sees each update as it passes."""
        from kpg.api.changes import EachChange

        shown = EachChange(self.db, self.schema, function)
        return self._make(nodes.InspectNode(self.schema, self.node.loops, self.node, shown))

    # Several collections

    def concat(self, *others: Collection) -> Collection:
        """All rows of these collections, counted together; columns must agree in name and type."""
        from kpg.api.recursion import check_same_columns

        for other in others:
            check_same_columns(other.schema, self.schema)
        inputs = (self.node, *[other.node for other in others])
        return self._make(nodes.ConcatNode(self.schema, _loops(*inputs), inputs))

    def subtract(self, other: Collection) -> Collection:
        """The rows of this, counted less by those of the other."""
        return self.concat(other.negate())

    def join(self, other: Collection, on: On) -> Collection:
        """Pairs of rows with equal keys: `on` is a column, some columns, or {column here: column there}.

        The columns of both; a key of the same name appears once, another column of the same name as `name_right`.
        """
        pairs = self._pairs(other, on)
        columns: list[tuple[int, str]] = [(0, name) for name in self.schema.names]
        names = list(self.schema.names)
        shared = {right for left, right in pairs if left == right}
        for name in other.schema.names:
            if name not in shared:
                columns.append((1, name))
                names.append(name if name not in names else f"{name}_right")
        types = self.schema.types + tuple(other.schema.type_of(name) for side, name in columns if side)
        schema = Schema(tuple(names), types)
        loops = _loops(self.node, other.node)
        return self._make(nodes.JoinNode(schema, loops, self.node, other.node, pairs, tuple(columns)))

    def semijoin(self, other: Collection, on: On) -> Collection:
        """The rows of this whose key is in the other, however often it is there."""
        pairs = self._pairs(other, on)
        keys = other.select(*[right for _, right in pairs]).distinct()
        columns = tuple((0, name) for name in self.schema.names)
        return self._make(
            nodes.JoinNode(self.schema, _loops(self.node, keys.node), self.node, keys.node, pairs, columns)
        )

    def antijoin(self, other: Collection, on: On) -> Collection:
        """The rows of this whose key is not in the other."""
        return self.subtract(self.semijoin(other, on))

    def intersect(self, other: Collection) -> Collection:
        """The rows of this that are in the other, by all columns."""
        return self.semijoin(other, on=self.schema.names)

    # Groups

    def group_by(self, *keys: str) -> Group:
        """The groups of rows with equal keys, to count, sum, or reduce; with no keys all rows are one group."""
        from kpg.api.group import Group

        self.schema.select(keys)
        return Group(self, keys)

    def count(self, *keys: str, name: str = "count") -> Collection:
        """How many rows each group has: the keys and a column `count`."""
        return self.group_by(*keys).count(name)

    def distinct(self) -> Collection:
        """Each row that is there at least once, once."""
        return self.threshold(1)

    def threshold(self, at_least: int) -> Collection:
        """Each row that is there at least so often, once."""
        if at_least < 1:
            raise BadPlan("threshold() below 1 would hold for rows that are not there")
        reduction = nodes.ReductionSpec("presence", at_least=at_least)
        return self._make(nodes.ReduceNode(self.schema, self.node.loops, self.node, self.schema.names, reduction))

    def consolidate(self) -> Collection:
        """The same rows, equal ones of a time summed before they go on."""
        return self._make(nodes.ConsolidateNode(self.schema, self.node.loops, self.node))

    # Recursion

    def iterate(
        self, step: Callable[[Collection], Collection], *, name: str = "iterate", max_rounds: int | None = None
    ) -> Collection:
        """The fixed point of `step`, starting from this collection."""
        loop = self.db.loop(name, max_rounds)
        variable = loop.variable(self)
        result = step(variable)
        if not isinstance(result, Collection):
            raise BadPlan(f"the step of {name} returned {type(result).__name__}", hint="Return a collection.")
        variable.set(result)
        return loop.leave(result)

    # Installing

    def arrange(self, *keys: str) -> Arrangement:
        """An index by some columns, shared by all queries that join or group by them.

        Of a collection of a loop, which lives only inside its query, the plan of such an index.
        """
        self.schema.select(keys)
        if self.node.loops:
            from kpg.api.loop_arrangement import LoopArrangement

            return LoopArrangement(self.db, nodes.ArrangeNode(self.schema, self.node.loops, self.node, keys))
        name = f"{getattr(self, 'name', 'collection')} by {', '.join(keys)}"
        return self.db.installer.arrangement(self.node, name, keys)

    def output(self, name: str | None = None, *, keep: bool = True) -> Output:
        """Install this as an answer: read it as of a time, follow its changes.

        With keep=False nothing is kept for reading: only changes can be followed.
        """
        self._require_outside("output")
        return self.db.installer.output(self.node, name, keep)

    def probe(self) -> Probe:
        """Install this only to know how far it has come."""
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
            mine, theirs = self.schema.type_of(left), other.schema.type_of(right)
            if not mine.same(theirs):
                raise TypeMismatch(
                    f"cannot join {left} with {right}",
                    detail=f"{left} is {mine}, {right} is {theirs}.",
                    hint="cast() one of them first.",
                )
        return pairs

    def _require_outside(self, what: str) -> None:
        if self.node.loops:
            names = ", ".join(sorted(loop.name for loop in self.node.loops))
            raise BadPlan(f"{what}() of a collection inside {names}", hint="Leave the loop first, with leave().")


def wrap_column(value: Any) -> Expression:
    """An expression; a plain string is the name of a column."""
    return ColumnReference(value) if isinstance(value, str) else wrap(value)


def _loops(*inputs: nodes.PlanNode) -> frozenset[nodes.Loop]:
    return frozenset[nodes.Loop]().union(*[node.loops for node in inputs])

"""Aggregates of an expression over the rows of a group, as users write them: `col("price").sum(where=col("n") > 0)`.

A `ColumnAggregate` is a description, as an expression is; `Group.aggregate` computes it. All but array_agg skip nulls.
Where no value is left, counts are 0 and the others null. With `where`, only rows count on which the condition is true;
with `distinct`, equal values count once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kpg.columns.order_key import OrderBy, OrderKey, order_keys_of
from kpg.columns.schema import Type, parse_type
from kpg.errors import BadPlan

if TYPE_CHECKING:
    from kpg.columns.expression import Expression

SUMMED: Final = ("count", "sum", "avg", "all", "any")  # maintained in sums: a change costs what it touches
SCANNED: Final = ("quantile", "mode", "variance", "stddev", "string_agg", "array_agg")  # read all values of a group
KINDS: Final = (*SUMMED, "min", "max", *SCANNED, "count_distinct")


@dataclass(frozen=True, slots=True, eq=False)
class ColumnAggregate:
    """A function of the values of an expression in a group; without an expression, of its rows."""

    kind: str
    argument: Expression | None = None
    where: Any = None
    distinct: bool = False
    option: str = ""  # form and fraction of a quantile, separator of text, "sample" or "population" and digits
    order: tuple[OrderKey, ...] = ()
    hierarchical: bool = False
    returns: Type | None = None  # of sums and averages: the type of the result, if not the usual one

    def __repr__(self) -> str:
        options = [repr(self.option)] if self.option else []
        options += [f"where={self.where!r}"] if self.where is not None else []
        options += ["distinct=True"] if self.distinct else []
        options += [f"returns={str(self.returns)!r}"] if self.returns is not None else []
        shown = f"{self.kind}({', '.join(options)})"
        return shown if self.argument is None else f"{self.argument!r}.{shown}"


class AggregateMethods:
    """The methods of expressions that begin an aggregate or an order."""

    __slots__ = ()

    def asc(self, *, nulls_last: bool = True) -> OrderKey:
        """Order by this expression, least first."""
        return OrderKey(_expression(self), False, nulls_last)

    def desc(self, *, nulls_last: bool = True) -> OrderKey:
        """Order by this expression, greatest first."""
        return OrderKey(_expression(self), True, nulls_last)

    def count(self, *, where: Any = None, distinct: bool = False) -> ColumnAggregate:
        """Count the values that are not null."""
        return ColumnAggregate("count", _expression(self), where, distinct)

    def count_distinct(self, *, where: Any = None) -> ColumnAggregate:
        """Count the different values that are not null."""
        return ColumnAggregate("count", _expression(self), where, True)

    def sum(self, *, where: Any = None, distinct: bool = False, returns: Any = None) -> ColumnAggregate:
        """Sum the values, exactly. `returns="decimal(38,0)"` is for sums of int64 that may leave 64 bits."""
        return ColumnAggregate("sum", _expression(self), where, distinct, returns=_decimal_type(returns))

    def avg(self, *, where: Any = None, distinct: bool = False, returns: Any = None) -> ColumnAggregate:
        """Return the mean as float64, or of exact numbers as a decimal type, rounded half away from zero."""
        return ColumnAggregate("avg", _expression(self), where, distinct, returns=_decimal_type(returns))

    mean = avg

    def min(self, *, where: Any = None, hierarchical: bool = False) -> ColumnAggregate:
        """Return the least value; `hierarchical=True` is for large groups."""
        return ColumnAggregate("min", _expression(self), where, hierarchical=hierarchical)

    def max(self, *, where: Any = None, hierarchical: bool = False) -> ColumnAggregate:
        """Return the greatest value; `hierarchical=True` is for large groups."""
        return ColumnAggregate("max", _expression(self), where, hierarchical=hierarchical)

    def all(self, *, where: Any = None) -> ColumnAggregate:
        """Return whether the condition is true on all rows where it is not null."""
        return ColumnAggregate("all", _expression(self), where)

    def any(self, *, where: Any = None) -> ColumnAggregate:
        """Return whether the condition is true on some row."""
        return ColumnAggregate("any", _expression(self), where)

    def quantile(
        self, fraction: float, *, interpolate: bool = True, where: Any = None, distinct: bool = False
    ) -> ColumnAggregate:
        """Return the value at a fraction of the sorted values, between two of them if interpolated, as float64.

        With interpolate=False it is the first value with at least that fraction at or before it, of any type.
        """
        if not 0 <= fraction <= 1:
            raise BadPlan(f"a quantile is at a fraction from 0 to 1, not {fraction}")
        option = f"{'between' if interpolate else 'first'} {float(fraction)!r}"
        return ColumnAggregate("quantile", _expression(self), where, distinct, option)

    def variance(self, *, sample: bool = False, where: Any = None, distinct: bool = False) -> ColumnAggregate:
        """Return the mean squared distance to the mean, as float64; of a sample, the sum divided by count - 1."""
        return ColumnAggregate("variance", _expression(self), where, distinct, "sample" if sample else "population")

    def stddev(self, *, sample: bool = False, where: Any = None, distinct: bool = False) -> ColumnAggregate:
        """Return the square root of the variance."""
        return ColumnAggregate("stddev", _expression(self), where, distinct, "sample" if sample else "population")

    def mode(self, *, where: Any = None) -> ColumnAggregate:
        """Return the most frequent value; of several, the least."""
        return ColumnAggregate("mode", _expression(self), where)

    def string_agg(
        self, separator: str = "", *, order: OrderBy | Iterable[OrderBy] = (), where: Any = None, distinct: bool = False
    ) -> ColumnAggregate:
        """Join strings with a separator, in the given order or else in their own; ties are in their own order too."""
        keys = order_keys_of(order)
        if keys and distinct:
            raise BadPlan("string_agg() of distinct values has their own order", hint="Leave out the order.")
        return ColumnAggregate("string_agg", _expression(self), where, distinct, separator, keys)

    def array_agg(
        self, *, order: OrderBy | Iterable[OrderBy] = (), where: Any = None, distinct: bool = False
    ) -> ColumnAggregate:
        """Return all values as an array, nulls too, in the given order or else in their own with nulls last."""
        return ColumnAggregate("array_agg", _expression(self), where, distinct, "", order_keys_of(order))


def count_rows(*, where: Any = None) -> ColumnAggregate:
    """Count rows: `aggregate(n=kpg.count_rows())`; with a condition, those on which it is true."""
    return ColumnAggregate("count", None, where)


def as_aggregate(written: Any) -> ColumnAggregate:
    """Return an aggregate in any of its forms: an object, "count", or a pair of a kind and a column."""
    from kpg.columns.expression import ColumnReference, Expression

    if isinstance(written, ColumnAggregate):
        return written
    kind, column = (written, None) if isinstance(written, str) else written
    if kind not in KINDS or (column is None and kind != "count"):
        raise BadPlan(f"no aggregate is called {kind!r}", hint=f"The aggregates are {', '.join(KINDS)}.")
    if column is None:
        return ColumnAggregate("count")
    argument = column if isinstance(column, Expression) else ColumnReference(column)
    if kind in ("quantile", "string_agg"):
        raise BadPlan(f"{kind} needs an argument", hint=f"Write it as a method: {argument!r}.{kind}(...).")
    made: ColumnAggregate = getattr(argument, kind)()
    return made


def _decimal_type(returns: Any) -> Type | None:
    if returns is None:
        return None
    type_ = parse_type(returns)
    if type_.kind != "decimal":
        raise BadPlan(f"a sum or an average returns its usual type or a decimal, not {type_}")
    return type_


def _expression(receiver: Any) -> Expression:
    expression: Expression = receiver
    return expression

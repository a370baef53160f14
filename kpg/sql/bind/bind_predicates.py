"""Bind predicates: comparisons of values and rows, IN, BETWEEN, IS, LIKE, ANY and ALL.

Rows are compared from left to right, as PostgreSQL does: `(a, b) < (c, d)` is a < c OR (a = c AND b < d).
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from kpg.errors import ParseError, ProgramError, TypeMismatch
from kpg.sql.bind.bind_context import BoundSelect, value_of
from kpg.sql.bind.coercions import as_boolean, coerce, function_call, resolved, unified
from kpg.sql.bind.scalar_binder import ScalarBinder
from kpg.sql.functions.cast_rules import category, common_type
from kpg.sql.parse.spans import Span
from kpg.sql.parse.sql_failures import not_supported, sql_failure
from kpg.sql.relational.relations import Project
from kpg.sql.relational.scalars import (
    TRUE,
    And,
    AnyRow,
    Case,
    Column,
    Constant,
    IsNull,
    Not,
    Or,
    SameValue,
    Scalar,
    SubqueryValue,
    conjunction,
)
from kpg.sql.sql_types import BOOLEAN, array_of

FALSE: Final = Constant(False, type=BOOLEAN)
STRICT: Final = {"<": "<", "<=": "<", ">": ">", ">=": ">"}


def disjunction(terms: tuple[Scalar, ...], span: Span | None) -> Scalar:
    """Return the disjunction of terms."""
    return terms[0] if len(terms) == 1 else Or(terms, type=BOOLEAN, span=span)


def all_of(terms: tuple[Scalar, ...], span: Span | None) -> Scalar:
    """Return the conjunction of terms."""
    return terms[0] if len(terms) == 1 else And(terms, type=BOOLEAN, span=span)


class PredicateBinder(ScalarBinder):
    """Binds predicates in one scope."""

    # --- comparisons

    def bind_EQ(self, node: exp.EQ) -> Scalar:
        """Bind =."""
        return self.comparison("=", node)

    def bind_NEQ(self, node: exp.NEQ) -> Scalar:
        """Bind <>."""
        return self.comparison("<>", node)

    def bind_LT(self, node: exp.LT) -> Scalar:
        """Bind <."""
        return self.comparison("<", node)

    def bind_LTE(self, node: exp.LTE) -> Scalar:
        """Bind <=."""
        return self.comparison("<=", node)

    def bind_GT(self, node: exp.GT) -> Scalar:
        """Bind >."""
        return self.comparison(">", node)

    def bind_GTE(self, node: exp.GTE) -> Scalar:
        """Bind >=."""
        return self.comparison(">=", node)

    def comparison(self, operator: str, node: exp.Expr) -> Scalar:
        """Bind a comparison of values or rows, or with ANY or ALL."""
        left, right = self.context.take(node, "this", "expression")
        if isinstance(right, (exp.Any, exp.All)):
            return self.quantified(operator, left, right, node)
        if isinstance(left, exp.Tuple) and isinstance(right, exp.Subquery):
            return self.compared_with_row(operator, left, right, node)
        return self.compare(operator, self.row_of(left), self.row_of(right), self.context.span(node))

    def compared_with_row(self, operator: str, left: exp.Tuple, right: exp.Subquery, node: exp.Expr) -> Scalar:
        """Bind `(a, b) = (SELECT x, y …)`: the comparison for the one row of the subquery, null if it has none."""
        row, query, span = self.row_of(left), self.subquery(right), self.context.span(node)
        if len(query.names) != len(row):
            problem = "too many" if len(query.names) > len(row) else "too few"
            raise sql_failure(ParseError, f"subquery has {problem} columns", span, "42601")
        value = self.compare(operator, row, tuple(map(value_of, query.columns)), span)
        column = Column("compared", BOOLEAN)
        return SubqueryValue(Project((column,), query.rows(), (value,)), column, type=BOOLEAN, span=span)

    def row_of(self, node: exp.Expr) -> tuple[Scalar, ...]:
        """Return the values of a row; a value is a row of one."""
        if isinstance(node, exp.Tuple):
            (items,) = self.context.take(node, "expressions")
            if not items:
                raise not_supported("a row without columns", self.context.span(node))
            return tuple(map(self.bind, items))
        return (self.bind(node),)

    def compare(self, operator: str, left: tuple[Scalar, ...], right: tuple[Scalar, ...], span: Span | None) -> Scalar:
        """Return a comparison of two rows of the same length."""
        if len(left) != len(right):
            if 1 in (len(left), len(right)):
                what = f"operator does not exist: a row {operator} a value"
                raise sql_failure(TypeMismatch, what, span, "42883")
            raise sql_failure(ParseError, "unequal number of entries in row expressions", span, "42601")
        if operator in STRICT and len(left) > 1:
            return self.compare_in_order(operator, left, right, span)
        terms = tuple(function_call(operator, pair, span) for pair in zip(left, right, strict=True))
        for term in terms:
            as_boolean(term, operator)
        if len(terms) > 1 and operator not in ("=", "<>"):
            raise not_supported(f"operator {operator} of rows", span)
        return disjunction(terms, span) if operator == "<>" else all_of(terms, span)

    def compare_in_order(
        self, operator: str, left: tuple[Scalar, ...], right: tuple[Scalar, ...], span: Span | None
    ) -> Scalar:
        """Return `<` and the like of rows: the first pair that differs decides."""
        (first, *_), (second, *_) = left, right
        if len(left) == 1:
            return function_call(operator, (first, second), span)
        before = function_call(STRICT[operator], (first, second), span)
        rest = self.compare_in_order(operator, left[1:], right[1:], span)
        equal = function_call("=", (first, second), span)
        return Or((before, And((equal, rest), type=BOOLEAN, span=span)), type=BOOLEAN, span=span)

    # --- ANY, ALL, IN

    def quantified(self, operator: str, left: exp.Expr, right: exp.Expr, node: exp.Expr) -> Scalar:
        """Bind `x op ANY (…)` and `x op ALL (…)`, over a subquery or an array."""
        (this,) = self.context.take(right, "this")
        every = isinstance(right, exp.All)
        span = self.context.span(node)
        if isinstance(this, exp.Subquery):
            return self.over_subquery(operator, self.row_of(left), self.subquery(this), every, span)
        items = this.expressions if isinstance(this, exp.Array) and this.args.get("bracket_notation") else None
        if items:
            value = self.bind(left)
            elements = unified([self.bind(item) for item in items], "ARRAY", span)
            terms = tuple(as_boolean(function_call(operator, (value, e), span), "ANY") for e in elements)
            return all_of(terms, span) if every else disjunction(terms, span)
        array = self.bind(this)
        if array.type.element is None and array.type.name != "unknown":
            raise sql_failure(ProgramError, "op ANY/ALL (array) requires array on right side", span, "42809")
        value, array = with_common_elements(self.bind(left), array, span)
        return function_call(f"{operator} {'all' if every else 'any'}", (value, array), span)

    def over_subquery(
        self, operator: str, row: tuple[Scalar, ...], query: BoundSelect, every: bool, span: Span | None
    ) -> Scalar:
        """Return whether a comparison holds for some row of a subquery, or for all: no row for which it does not."""
        columns = query.columns
        if len(columns) != len(row):
            problem = "too many" if len(columns) > len(row) else "too few"
            raise sql_failure(ParseError, f"subquery has {problem} columns", span, "42601")
        condition = self.compare(operator, row, tuple(map(value_of, columns)), span)
        if not every:
            return AnyRow(query.rows(), condition, type=BOOLEAN, span=span)
        fails = Not(condition, type=BOOLEAN, span=span)
        return Not(AnyRow(query.rows(), fails, type=BOOLEAN, span=span), type=BOOLEAN, span=span)

    def bind_In(self, node: exp.In) -> Scalar:
        """Bind IN with a subquery or a list."""
        this, items, query = self.context.take(node, "this", "expressions", "query")
        span = self.context.span(node)
        row = self.row_of(this)
        if query is not None:
            return self.over_subquery("=", row, self.subquery(query), False, span)
        others = [self.row_of(item) for item in items]
        if len(row) == 1 and all(len(other) == 1 for other in others):
            others = [(value,) for value in self.in_values(row[0], [other[0] for other in others])]
        return disjunction(tuple(self.compare("=", row, other, span) for other in others), span)

    def in_values(self, value: Scalar, items: list[Scalar]) -> list[Scalar]:
        """Return the items of a list with the types that they are compared in: string constants get one type."""
        known = [item for item in (value, *items) if item.type.name != "unknown"]
        if not known or len({item.type for item in known}) > 1 or value.type.name != "unknown":
            return items
        return list(unified([known[0], *items], "IN", value.span))[1:]

    # --- BETWEEN, IS, DISTINCT FROM

    def bind_Between(self, node: exp.Between) -> Scalar:
        """Bind BETWEEN as two comparisons; SYMMETRIC takes the bounds in either order."""
        this, low, high, symmetric = self.context.take(node, "this", "low", "high", "symmetric")
        span = self.context.span(node)
        value, least, greatest = self.row_of(this), self.row_of(low), self.row_of(high)
        within = self.within(value, least, greatest, span)
        if not symmetric:
            return within
        return Or((within, self.within(value, greatest, least, span)), type=BOOLEAN, span=span)

    def within(
        self, value: tuple[Scalar, ...], low: tuple[Scalar, ...], high: tuple[Scalar, ...], span: Span | None
    ) -> Scalar:
        """Return low <= value <= high."""
        terms = (self.compare(">=", value, low, span), self.compare("<=", value, high, span))
        return And(terms, type=BOOLEAN, span=span)

    def bind_NullSafeEQ(self, node: exp.Expr) -> Scalar:
        """Bind IS NOT DISTINCT FROM."""
        left, right = self.context.take(node, "this", "expression")
        rows = self.row_of(left), self.row_of(right)
        span = self.context.span(node)
        self.compare("=", *rows, span)  # types that cannot be compared are an error
        return all_of(tuple(self.same(a, b, span) for a, b in zip(*rows, strict=True)), span)

    def bind_NullSafeNEQ(self, node: exp.NullSafeNEQ) -> Scalar:
        """Bind IS DISTINCT FROM."""
        return Not(self.bind_NullSafeEQ(node), type=BOOLEAN, span=self.context.span(node))

    def same(self, left: Scalar, right: Scalar, span: Span | None) -> Scalar:
        """Return whether two values are equal or both null."""
        first, second = unified((left, right), "IS DISTINCT FROM", span)
        return SameValue(first, second, type=BOOLEAN, span=span)

    def bind_Is(self, node: exp.Is) -> Scalar:
        """Bind IS [NOT] NULL, TRUE, FALSE and UNKNOWN."""
        this, what, negate = self.context.take(node, "this", "expression", "negate")
        span = self.context.span(node)
        if isinstance(what, exp.Null):
            return self.is_null(self.row_of(this), bool(negate), span)
        value = as_boolean(self.bind(this), "IS")
        if isinstance(what, exp.Var):
            test: Scalar = IsNull(value, type=BOOLEAN, span=span)
        else:
            wanted = value if what.this else Not(value, type=BOOLEAN, span=span)
            test = Case(((wanted, TRUE),), FALSE, type=BOOLEAN, span=span)
        return Not(test, type=BOOLEAN, span=span) if negate else test

    def is_null(self, row: tuple[Scalar, ...], negate: bool, span: Span | None) -> Scalar:
        """Return whether all values of a row are null, or all are not."""
        terms: tuple[Scalar, ...] = tuple(IsNull(resolved(value), type=BOOLEAN, span=span) for value in row)
        if negate:
            terms = tuple(Not(term, type=BOOLEAN, span=span) for term in terms)
        return conjunction(terms)

    # --- LIKE

    def bind_Like(self, node: exp.Like) -> Scalar:
        """Bind LIKE."""
        return self.comparison("~~", node)

    def bind_ILike(self, node: exp.ILike) -> Scalar:
        """Bind ILIKE."""
        return self.comparison("~~*", node)

    def bind_SimilarTo(self, node: exp.SimilarTo) -> Scalar:
        """Bind SIMILAR TO: its pattern becomes a regular expression."""
        this, pattern = self.context.take(node, "this", "expression")
        span = self.context.span(node)
        converted = function_call("similar_to_escape", (self.bind(pattern),), span)
        return function_call("~", (self.bind(this), converted), span)

    def bind_Escape(self, node: exp.Escape) -> Scalar:
        """Bind the escape character of LIKE and SIMILAR TO."""
        predicate, escape = self.context.take(node, "this", "expression")
        this, pattern = self.context.take(predicate, "this", "expression")
        span = self.context.span(node)
        operators = {exp.Like: "~~", exp.ILike: "~~*", exp.SimilarTo: "~"}
        converter = "similar_to_escape" if isinstance(predicate, exp.SimilarTo) else "like_escape"
        converted = function_call(converter, (self.bind(pattern), self.bind(escape)), span)
        return function_call(operators[type(predicate)], (self.bind(this), converted), span)


def with_common_elements(value: Scalar, array: Scalar, span: Span | None) -> tuple[Scalar, Scalar]:
    """Return a value and a constant array of the common type of the value and the elements, if there is one."""
    element = array.type.element
    if not isinstance(array, Constant) or element is None or element == value.type or value.type.name == "unknown":
        return value, array
    if category(value.type) != category(element):
        return value, array
    target = common_type([value.type, element])
    items = [coerce(Constant(item, type=element, span=span), target) for item in array.value or ()]
    if not all(isinstance(item, Constant) for item in items):
        return value, array
    values = None if array.value is None else tuple(item.value for item in items if isinstance(item, Constant))
    return coerce(value, target), Constant(values, type=array_of(target), span=array.span)

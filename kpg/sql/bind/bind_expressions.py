"""Bind expressions: each class of syntax node has a method, and a class without one is refused by name.

The binder of one expression knows the scope of its names. Operators and functions go through the function tables;
logic, CASE and COALESCE have scalars of their own, because they do not evaluate what they do not need.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from sqlglot import exp

from kpg.columns.pause_points import pause
from kpg.errors import ParseError, TypeMismatch, UndefinedName
from kpg.query.source_text import did_you_mean
from kpg.sql.bind.bind_calls import CallBinder
from kpg.sql.bind.bind_predicates import PredicateBinder
from kpg.sql.bind.catalog_calls import cast_to_name, is_option_vector
from kpg.sql.bind.coercions import as_boolean, coerce, function_call, is_unknown, resolved, unified
from kpg.sql.bind.parameter_values import parameter_constant, signed_number
from kpg.sql.bind.tree_reading import name_of
from kpg.sql.functions.sql_literals import number_literal
from kpg.sql.parse.sql_failures import not_supported, sql_failure
from kpg.sql.parse.type_rules import OBJECT_TYPES
from kpg.sql.relational.scalars import (
    And,
    Case,
    Coalesce,
    Constant,
    Exists,
    Not,
    Or,
    Scalar,
    ScalarCall,
    SubqueryArray,
    SubqueryValue,
)
from kpg.sql.sql_types import BOOLEAN, INTEGER, INTERVAL, SMALLINT, UNKNOWN, SqlType, array_of

OPERATORS: Final[dict[type[exp.Expr], str]] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.Pow: "^",
}  # fmt: skip
NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)")
FIELD_FORMS: Final = {
    "year to month": re.compile(r"[+-]?\d+-\d+"),
    "day to second": re.compile(r"[+-]?\d+ \d+:\d+:\d+(\.\d*)?"),
    "hour to second": re.compile(r"[+-]?\d+:\d+:\d+(\.\d*)?"),
}


class ExpressionBinder(PredicateBinder, CallBinder):
    """Binds expressions in one scope."""

    def bind(self, node: exp.Expr) -> Scalar:
        """Return an expression as a scalar; a string constant may still have no type."""
        pause()
        operator = OPERATORS.get(type(node))
        method: Callable[[exp.Expr], Scalar] | None = getattr(self, f"bind_{type(node).__name__}", None)
        if operator is not None:
            method = partial(self.bind_operator, operator)
        if method is None:
            raise not_supported(f"{type(node).__name__} as an expression", self.context.span(node))
        return method(node)

    # --- names and constants

    def bind_Column(self, node: exp.Column) -> Scalar:
        """Bind the name of a column."""
        this, table, schema = self.context.take(node, "this", "table", "db")
        span = self.context.span(node)
        if isinstance(this, exp.Star):
            raise not_supported("a whole row as a value", span)
        if schema is not None and name_of(schema) not in ("public", "pg_catalog", "information_schema"):
            raise sql_failure(UndefinedName, f'schema "{name_of(schema)}" does not exist', span, "42P01")
        name = name_of(this)
        value = (
            self.scope.unqualified(name, span) if table is None else self.scope.qualified(name_of(table), name, span)
        )
        return self.with_span(value, node)

    def bind_Literal(self, node: exp.Literal) -> Scalar:
        """Bind a string or a number."""
        span = self.context.span(node)
        if node.args["is_string"]:
            return Constant(node.this, type=UNKNOWN, span=span)
        with self.located(node):
            value, type_ = number_literal(node.this)
        return Constant(value, type=type_, span=span)

    def bind_Null(self, node: exp.Null) -> Scalar:
        """Bind NULL."""
        return Constant(None, type=UNKNOWN, span=self.context.span(node))

    def bind_Boolean(self, node: exp.Boolean) -> Scalar:
        """Bind TRUE and FALSE."""
        return Constant(bool(node.this), type=BOOLEAN, span=self.context.span(node))

    def bind_Placeholder(self, node: exp.Placeholder) -> Scalar:
        """Bind a parameter: its value becomes a constant."""
        name, span = str(node.this), self.context.span(node)
        parameters = {str(key): value for key, value in self.context.parameters.items()}
        if name not in parameters:
            hint = did_you_mean(name, parameters) or "A parameter is given by name: db.sql(text, name=value)."
            raise sql_failure(UndefinedName, f"there is no parameter {name}", span, "42P02", hint=hint)
        return parameter_constant(parameters[name], span)

    def bind_Var(self, node: exp.Var) -> Scalar:
        """Refuse DEFAULT outside INSERT and SET."""
        what = f"{node.this} is not allowed in this context"
        raise sql_failure(ParseError, what, self.context.span(node), "42601")

    def bind_Interval(self, node: exp.Interval) -> Scalar:
        """Bind `interval '1' month`: the fields after the string say what a number without a unit is."""
        text, fields = self.context.take(node, "this", "unit")
        span = self.context.span(node)
        literal = text.this if fields is None else with_field(text.this, fields)
        if literal is None:
            raise not_supported(f"INTERVAL … {fields.upper()} of this text", span)
        return coerce(Constant(literal, type=UNKNOWN, span=span), INTERVAL, "explicit")

    def bind_Paren(self, node: exp.Paren) -> Scalar:
        """Bind what is in parentheses."""
        (this,) = self.context.take(node, "this")
        return self.with_span(self.bind(this), node)

    # --- operators

    def bind_operator(self, name: str, node: exp.Expr) -> Scalar:
        """Bind a binary operator."""
        left, right = self.context.take(node, "this", "expression")
        return self.operator(name, left, right, node)

    def operator(self, name: str, left: exp.Expr, right: exp.Expr, node: exp.Expr) -> Scalar:
        """Bind an operator with two operands."""
        return function_call(name, (self.bind(left), self.bind(right)), self.context.span(node))

    def bind_Operator(self, node: exp.Operator) -> Scalar:
        """Bind an operator that is known by its symbol only; one without a left operand is a prefix."""
        left, symbol, right = self.context.take(node, "this", "operator", "expression")
        if left is None:
            name = {"|/": "sqrt", "||/": "cbrt"}.get(symbol, symbol)
            return function_call(name, (self.bind(right),), self.context.span(node))
        if isinstance(right, (exp.Any, exp.All)):
            return self.quantified(symbol, left, right, node)
        return self.operator(symbol, left, right, node)

    def bind_Neg(self, node: exp.Neg) -> Scalar:
        """Bind a minus sign; that of a number is part of the constant."""
        (this,) = self.context.take(node, "this")
        span = self.context.span(node)
        if isinstance(this, exp.Literal) and not this.args["is_string"]:
            with self.located(node):
                value, type_ = signed_number(f"-{this.this}")
            return Constant(value, type=type_, span=span)
        return function_call("-", (self.bind(this),), span)

    def bind_AtTimeZone(self, node: exp.AtTimeZone) -> Scalar:
        """Bind AT TIME ZONE, which is the function timezone."""
        this, zone = self.context.take(node, "this", "zone")
        return function_call("timezone", (self.bind(zone), self.bind(this)), self.context.span(node))

    def bind_Collate(self, node: exp.Collate) -> Scalar:
        """Bind COLLATE: text orders by code point, which is the collation "C"."""
        this, collation = self.context.take(node, "this", "expression")
        if name_of(collation) not in ("C", "POSIX", "ucs_basic", "default"):
            raise not_supported(f"COLLATE {collation.name}", self.context.span(node), hint='There is COLLATE "C".')
        value = self.bind(this)
        value = coerce(value, text_type()) if is_unknown(value) else value
        if not value.type.is_text:
            what = f"collations are not supported by type {value.type}"
            raise sql_failure(TypeMismatch, what, self.context.span(node), "42804")
        return value

    # --- logic

    def bind_And(self, node: exp.And) -> Scalar:
        """Bind a conjunction; nested ones become one."""
        terms = self.logic_terms(node, exp.And, "AND")
        return And(terms, type=BOOLEAN, span=self.context.span(node))

    def bind_Or(self, node: exp.Or) -> Scalar:
        """Bind a disjunction; nested ones become one."""
        terms = self.logic_terms(node, exp.Or, "OR")
        return Or(terms, type=BOOLEAN, span=self.context.span(node))

    def logic_terms(self, node: exp.Expr, kind: type[exp.Expr], word: str) -> tuple[Scalar, ...]:
        """Return the terms of nested conjunctions or disjunctions, from left to right."""
        terms: list[Scalar] = []
        stack = [node]
        while stack:
            current = stack.pop()
            if isinstance(current, kind):
                left, right = self.context.take(current, "this", "expression")
                stack += [right, left]
            else:
                terms.append(as_boolean(self.bind(current), word))
        return tuple(terms)

    def bind_Not(self, node: exp.Not) -> Scalar:
        """Bind a negation."""
        (this,) = self.context.take(node, "this")
        return Not(as_boolean(self.bind(this), "NOT"), type=BOOLEAN, span=self.context.span(node))

    def condition(self, node: exp.Expr, clause: str) -> Scalar:
        """Bind a condition."""
        return as_boolean(self.bind(node), clause)

    # --- CASE, COALESCE and the like

    def bind_Case(self, node: exp.Case) -> Scalar:
        """Bind CASE; with an operand, each WHEN is compared with it."""
        operand, branches, default = self.context.take(node, "this", "ifs", "default")
        span = self.context.span(node)
        conditions: list[Scalar] = []
        values: list[Scalar] = []
        subject = None if operand is None else resolved(self.bind(operand))
        for branch in branches:
            test, value = self.context.take(branch, "this", "true")
            if subject is None:
                conditions.append(self.condition(test, "CASE/WHEN"))
            else:
                conditions.append(function_call("=", (subject, self.bind(test)), self.context.span(test)))
            values.append(self.bind(value))
        otherwise = Constant(None, type=UNKNOWN) if default is None else self.bind(default)
        *values, otherwise = unified([*values, otherwise], "CASE", span)
        return Case(tuple(zip(conditions, values, strict=True)), otherwise, type=otherwise.type, span=span)

    def bind_Coalesce(self, node: exp.Coalesce) -> Scalar:
        """Bind COALESCE."""
        (arguments,) = self.context.take(node, "expressions")
        values = unified([self.bind(argument) for argument in arguments], "COALESCE", self.context.span(node))
        return Coalesce(values, type=values[0].type, span=self.context.span(node))

    def bind_Greatest(self, node: exp.Greatest) -> Scalar:
        """Bind GREATEST."""
        return self.common_call("greatest", self.context.take(node, "expressions")[0], node)

    def bind_Least(self, node: exp.Least) -> Scalar:
        """Bind LEAST."""
        return self.common_call("least", self.context.take(node, "expressions")[0], node)

    def common_call(self, name: str, arguments: Sequence[exp.Expr], node: exp.Expr) -> Scalar:
        """Bind a function whose arguments have their common type."""
        span = self.context.span(node)
        values = unified([self.bind(argument) for argument in arguments], name.upper(), span)
        return function_call(name, values, span)

    def bind_Nullif(self, node: exp.Nullif) -> Scalar:
        """Bind NULLIF: it compares as = does, and its value has the type in which it is compared."""
        first, second = self.context.take(node, "this", "expression")
        span = self.context.span(node)
        equal = function_call("=", (self.bind(first), self.bind(second)), span)
        assert isinstance(equal, ScalarCall)
        value = equal.arguments[0]
        return Case(((equal, Constant(None, type=value.type)),), value, type=value.type, span=span)

    # --- casts and arrays

    def bind_Cast(self, node: exp.Cast) -> Scalar:
        """Bind a cast; the elements of an array constructor are cast one by one."""
        this, to = self.context.take(node, "this", "to")
        target: SqlType = to.args["this"]
        span = self.context.span(node)
        if target.name in OBJECT_TYPES:
            return cast_to_name(target.name, self.bind(this), self.context, span)
        inner = this.this if isinstance(this, exp.Paren) else this
        if isinstance(inner, exp.Array) and inner.args.get("bracket_notation") and target.element is not None:
            return self.array_of_type(inner, target, span_node=node)
        return coerce(self.bind(this), target, "explicit", span)

    def array_of_type(self, node: exp.Array, target: SqlType, span_node: exp.Expr) -> Scalar:
        """Bind ARRAY[…]::type[]."""
        span = self.context.span(span_node)
        assert target.element is not None
        if not node.expressions:
            return coerce(Constant("{}", type=UNKNOWN, span=span), target, "explicit")
        elements = [coerce(self.bind(element), target.element, "explicit") for element in node.expressions]
        return function_call("array", elements, span)

    def bind_Array(self, node: exp.Array) -> Scalar:
        """Bind ARRAY[…] or ARRAY(query)."""
        elements, bracketed = self.context.take(node, "expressions", "bracket_notation")
        span = self.context.span(node)
        if not bracketed:
            query = self.subquery(elements[0])
            column = self.only_column(query, node)
            return SubqueryArray(query.relation, column, query.order, type=array_of(column.type), span=span)
        if not elements:
            hint = "Cast it to a type: ARRAY[]::integer[]."
            raise sql_failure(TypeMismatch, "cannot determine type of empty array", span, "42P18", hint=hint)
        return function_call("array", unified([self.bind(element) for element in elements], "ARRAY", span), span)

    def bind_Bracket(self, node: exp.Bracket) -> Scalar:
        """Bind a subscript of an array."""
        this, indices = self.context.take(node, "this", "expressions")
        span = self.context.span(node)
        if isinstance(indices[0], exp.Slice):
            raise not_supported("a slice of an array", span)
        array = self.bind(this)
        if is_option_vector(array):
            return Constant(0, type=SMALLINT, span=span)  # all indexes are ascending, with nulls last
        if array.type.element is None:
            what = f"cannot subscript type {array.type} because it does not support subscripting"
            raise sql_failure(TypeMismatch, what, span, "42804")
        index = coerce(self.bind(indices[0]), INTEGER, "assignment")
        return function_call("subscript", (array, index), span)

    def bind_Tuple(self, node: exp.Tuple) -> Scalar:
        """Refuse a row where one value is wanted."""
        raise not_supported("a row as a value", self.context.span(node))

    # --- subqueries

    def bind_Subquery(self, node: exp.Subquery) -> Scalar:
        """Bind a query whose one row is a value."""
        query = self.subquery(node)
        column = self.only_column(query, node)
        return SubqueryValue(query.rows(), column, type=column.type, span=self.context.span(node))

    def bind_Exists(self, node: exp.Exists) -> Scalar:
        """Bind EXISTS."""
        (this,) = self.context.take(node, "this")
        return Exists(self.subquery(this).rows(), type=BOOLEAN, span=self.context.span(node))


def text_type() -> SqlType:
    """Return the type text."""
    return SqlType("text")


def with_field(text: str, fields: str) -> str | None:
    """Return the text of an interval with a unit for its number: that of the last field.

    Text that has the form of its fields means the same without them; None for other texts, which fields would cut.
    """
    first, _, last = fields.partition(" to ")
    if NUMBER.fullmatch(text.strip()):
        return f"{text.strip()} {last or first}"
    form = FIELD_FORMS.get(fields)
    return text if form is not None and form.fullmatch(text.strip()) else None

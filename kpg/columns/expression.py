"""Expressions over columns, as users write them: trees that print as their source.

    eval(repr(expression)), with col, lit, when, ... in scope, builds the same expression

An expression has no schema: `kpg.columns.bind.bind` gives it types and evaluates it. Operators build trees, so an
expression has no truth value, and `==` builds a comparison; to compare two expressions, use `structure()`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kpg.columns.column_aggregates import AggregateMethods
from kpg.columns.expression_origin import ExpressionOrigin
from kpg.columns.schema import Type, parse_type
from kpg.errors import TypeMismatch

if TYPE_CHECKING:
    from kpg.columns.expression_methods import DateMethods, StringMethods

Name: TypeAlias = str  # inside Expression, `str` is the property

# The precedence of binary operators, as in Python.
_INFIX: Final = dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), 1) | {
    "|": 2,
    "&": 3,
    "+": 4,
    "-": 4,
    "*": 5,
    "/": 5,
    "//": 5,
    "%": 5,
    "**": 7,
}
_PREFIX: Final = {"neg": "-", "~": "~"}
_TIGHT: Final = 8  # the precedence of attributes and calls
_FUNCTIONS: Final = frozenset({"coalesce", "min_of", "max_of"})


class Expression(AggregateMethods, ABC):
    """A value for each row, computed from the row's columns."""

    __slots__ = ()
    __hash__ = object.__hash__

    @abstractmethod
    def structure(self) -> Hashable:
        """Return a key that is equal for expressions with the same source."""

    def __bool__(self) -> bool:
        raise TypeMismatch(
            f"{self!r} has no truth value",
            hint="Combine conditions with & | ~ and parentheses, not with and, or, not, in, or a < b < c.",
        )

    def __add__(self, other: object) -> Expression:
        return FunctionCall("+", (self, wrap(other)))

    def __radd__(self, other: object) -> Expression:
        return FunctionCall("+", (wrap(other), self))

    def __sub__(self, other: object) -> Expression:
        return FunctionCall("-", (self, wrap(other)))

    def __rsub__(self, other: object) -> Expression:
        return FunctionCall("-", (wrap(other), self))

    def __mul__(self, other: object) -> Expression:
        return FunctionCall("*", (self, wrap(other)))

    def __rmul__(self, other: object) -> Expression:
        return FunctionCall("*", (wrap(other), self))

    def __truediv__(self, other: object) -> Expression:
        return FunctionCall("/", (self, wrap(other)))

    def __rtruediv__(self, other: object) -> Expression:
        return FunctionCall("/", (wrap(other), self))

    def __floordiv__(self, other: object) -> Expression:
        return FunctionCall("//", (self, wrap(other)))

    def __rfloordiv__(self, other: object) -> Expression:
        return FunctionCall("//", (wrap(other), self))

    def __mod__(self, other: object) -> Expression:
        return FunctionCall("%", (self, wrap(other)))

    def __rmod__(self, other: object) -> Expression:
        return FunctionCall("%", (wrap(other), self))

    def __pow__(self, other: object) -> Expression:
        return FunctionCall("**", (self, wrap(other)))

    def __rpow__(self, other: object) -> Expression:
        return FunctionCall("**", (wrap(other), self))

    def __neg__(self) -> Expression:
        return FunctionCall("neg", (self,))

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return FunctionCall("==", (self, wrap(other)))

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return FunctionCall("!=", (self, wrap(other)))

    def __lt__(self, other: object) -> Expression:
        return FunctionCall("<", (self, wrap(other)))

    def __le__(self, other: object) -> Expression:
        return FunctionCall("<=", (self, wrap(other)))

    def __gt__(self, other: object) -> Expression:
        return FunctionCall(">", (self, wrap(other)))

    def __ge__(self, other: object) -> Expression:
        return FunctionCall(">=", (self, wrap(other)))

    def __and__(self, other: object) -> Expression:
        return FunctionCall("&", (self, wrap(other)))

    def __rand__(self, other: object) -> Expression:
        return FunctionCall("&", (wrap(other), self))

    def __or__(self, other: object) -> Expression:
        return FunctionCall("|", (self, wrap(other)))

    def __ror__(self, other: object) -> Expression:
        return FunctionCall("|", (wrap(other), self))

    def __invert__(self) -> Expression:
        return FunctionCall("~", (self,))

    def abs(self) -> Expression:
        """Return the absolute value."""
        return FunctionCall("abs", (self,))

    def round(self, digits: int = 0) -> Expression:
        """Round a number to some digits after the point: a float half to even, a decimal half away from zero."""
        return FunctionCall("round", (self,), (digits,))

    def is_null(self) -> Expression:
        """Return whether the value is null; the result is never null."""
        return FunctionCall("is_null", (self,))

    def not_null(self) -> Expression:
        """Return the value as a type without null; a row with null fails."""
        return FunctionCall("not_null", (self,))

    def fill_null(self, value: object) -> Expression:
        """Return another value where this one is null."""
        return FunctionCall("coalesce", (self, wrap(value)))

    def fails(self) -> Expression:
        """Return whether a row fails on the expression; the result itself never fails and is never null."""
        return FunctionCall("fails", (self,))

    def is_in(self, values: Iterable[object]) -> Expression:
        """Return whether the value is one of some constants."""
        if isinstance(values, (Name, bytes)):
            raise TypeMismatch(f"is_in takes several values, not {values!r}", hint="Put it in a list.")
        return FunctionCall("is_in", (self,), tuple(Literal(value) for value in values))

    def cast(self, type_: object) -> Expression:
        """Return the value as another type; a row fails if the type has no such value. Null stays null."""
        return FunctionCall("cast", (self,), (parse_type(type_),))

    def hash(self) -> Expression:
        """Return a hash of 64 bits that depends on the value alone, in every process; null has a hash, too."""
        return FunctionCall("hash", (self,))

    def named(self, name: Name) -> Expression:
        """Return the same value with a name for its column."""
        return Named(self, name)

    alias = named

    @property
    def str(self) -> StringMethods:
        """Functions of strings."""
        from kpg.columns.expression_methods import StringMethods

        return StringMethods(self)

    @property
    def dt(self) -> DateMethods:
        """Functions of dates and timestamps."""
        from kpg.columns.expression_methods import DateMethods

        return DateMethods(self)


class ColumnReference(Expression):
    """The value of one column."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def structure(self) -> Hashable:
        return ("column", self.name)

    def __repr__(self) -> str:
        return f"col({_quote(self.name)})"


class Literal(Expression):
    """The same value for every row."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def structure(self) -> Hashable:
        return ("literal", type(self.value).__name__, repr(self.value))

    def __repr__(self) -> str:
        return f"lit({_quote(self.value)})"


class FunctionCall(Expression):
    """A function or operator, its arguments, and options that are not expressions."""

    __slots__ = ("arguments", "op", "options")

    def __init__(self, op: str, arguments: tuple[Expression, ...], options: tuple[Any, ...] = ()) -> None:
        self.op = op
        self.arguments = arguments
        self.options = options

    def structure(self) -> Hashable:
        options = tuple(o.structure() if isinstance(o, Expression) else o for o in self.options)
        return (self.op, *(argument.structure() for argument in self.arguments), options)

    def __repr__(self) -> str:
        if self.op in _INFIX:
            binding = _INFIX[self.op]
            left, right = self.arguments
            chained = binding == 1  # a < b < c has another meaning in Python
            # Between a bare constant and an expression, Python would swap the operands of a comparison.
            to_the_right = self.op == "**"  # a ** b ** c is a ** (b ** c), and -2 ** a is -(2 ** a)
            as_literal = isinstance(left, Literal) and (chained or to_the_right or isinstance(right, Literal))
            shown_left = repr(left) if as_literal else _show(left, binding + (chained or to_the_right))
            return f"{shown_left} {self.op} {_show(right, binding + (not to_the_right))}"
        if self.op in _PREFIX:
            return _PREFIX[self.op] + _show_receiver(self.arguments[0], 6)
        if self.op == "when":
            *pairs, last = self.arguments
            steps = [f"when({_bare(c)}, {_bare(v)})" for c, v in zip(pairs[::2], pairs[1::2], strict=True)]
            return ".".join(steps) + f".otherwise({_bare(last)})"
        if self.op == "is_in":
            return f"{_show_receiver(self.arguments[0])}.is_in([{', '.join(_bare(o) for o in self.options)}])"
        shown = [_bare(argument) for argument in self.arguments]
        if self.op in _FUNCTIONS:
            return f"{self.op}({', '.join(shown)})"
        shown = shown[1:] + [_quote(str(o)) if isinstance(o, Type) else repr(o) for o in self.options]
        return f"{_show_receiver(self.arguments[0])}.{self.op}({', '.join(shown)})"


class Named(Expression):
    """An expression with a name for its column."""

    __slots__ = ("expression", "name")

    def __init__(self, expression: Expression, name: str) -> None:
        self.expression = expression
        self.name = name

    def structure(self) -> Hashable:
        return ("named", self.name, self.expression.structure())

    def __repr__(self) -> str:
        return f"{_show_receiver(self.expression)}.named({_quote(self.name)})"


class Written(Expression):
    """An expression that a query language compiled, with the source text that messages show instead of its own."""

    __slots__ = ("expression", "origin")

    def __init__(self, expression: Expression, origin: ExpressionOrigin) -> None:
        self.expression = expression
        self.origin = origin

    def structure(self) -> Hashable:
        return ("written", self.origin, self.expression.structure())

    def __repr__(self) -> str:
        return repr(self.expression)


class Apply(Expression):
    """A function of columns: of NumPy arrays, of Arrow arrays, or of one row's values at a time.

    `options` are constants that kpg passes to functions of query languages before the arguments.
    """

    __slots__ = ("arguments", "function", "kind", "options", "returns")

    def __init__(
        self,
        function: Callable[..., Any],
        returns: Type,
        kind: str,
        arguments: tuple[Expression, ...],
        options: tuple[Any, ...] = (),
    ) -> None:
        self.function = function
        self.returns = returns
        self.kind = kind
        self.arguments = arguments
        self.options = options

    @property
    def name(self) -> str:
        """The name of the function, for messages."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    def structure(self) -> Hashable:
        function = self.function if isinstance(self.function, Hashable) else id(self.function)
        return ("apply", self.kind, function, self.returns, self.options, *(a.structure() for a in self.arguments))

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(_bare(argument) for argument in self.arguments)})"


def wrap(value: object) -> Expression:
    """Return an expression unchanged, and any other value as a constant."""
    return value if isinstance(value, Expression) else Literal(value)


def name_of(expression: Expression) -> str | None:
    """Return the name of an expression: that of `named`, or that of its column."""
    return expression.name if isinstance(expression, (Named, ColumnReference)) else None


def columns_in(expression: Expression) -> frozenset[str]:
    """Return the names of the columns that an expression reads."""
    found: set[str] = set()
    stack: list[object] = [expression]
    while stack:
        match stack.pop():
            case ColumnReference() as column:
                found.add(column.name)
            case FunctionCall() as call:
                stack += [*call.arguments, *call.options]
            case Apply() as call:
                stack += call.arguments
            case Named() | Written() as inner:
                stack.append(inner.expression)
    return frozenset(found)


def with_columns(expression: Expression, columns: Mapping[str, Expression]) -> Expression:
    """Return an expression with other expressions in place of columns; those that `columns` lacks stay."""
    match expression:
        case ColumnReference():
            return columns.get(expression.name, expression)
        case FunctionCall():
            options = tuple(with_columns(o, columns) if isinstance(o, Expression) else o for o in expression.options)
            arguments = tuple(with_columns(argument, columns) for argument in expression.arguments)
            return FunctionCall(expression.op, arguments, options)
        case Apply():
            arguments = tuple(with_columns(argument, columns) for argument in expression.arguments)
            return Apply(expression.function, expression.returns, expression.kind, arguments, expression.options)
        case Named():
            return Named(with_columns(expression.expression, columns), expression.name)
        case Written():
            origin = expression.origin
            put = [(shown, columns.get(name, ColumnReference(name))) for shown, name in origin.columns]
            kept = tuple((shown, column.name) for shown, column in put if isinstance(column, ColumnReference))
            return Written(with_columns(expression.expression, columns), replace(origin, columns=kept))
    return expression


def _binding(expression: Expression) -> int:
    if isinstance(expression, Written):
        return _binding(expression.expression)
    if isinstance(expression, FunctionCall):
        return 6 if expression.op in _PREFIX else _INFIX.get(expression.op, _TIGHT)
    return _TIGHT


def _show(operand: Expression, at_least: int) -> str:
    if isinstance(operand, Literal):
        return _quote(operand.value)
    return repr(operand) if _binding(operand) >= at_least else f"({operand!r})"


def _show_receiver(operand: Expression, at_least: int = _TIGHT) -> str:
    return repr(operand) if _binding(operand) >= at_least else f"({operand!r})"


def _bare(expression: Expression) -> str:
    return _quote(expression.value) if isinstance(expression, Literal) else repr(expression)


def _quote(value: object) -> str:
    text = repr(value)
    if isinstance(value, str) and text[0] == "'" and '"' not in text:
        return f'"{text[1:-1]}"'
    return text

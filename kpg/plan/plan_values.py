"""The values in a plan document as JSON: schemas, expressions, constants and the names of functions.

    read_x(write_x(value)) == value        in any process

The words "column", "literal", "call" and so on are names on the wire.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from kpg.columns.column_types.tagged_text import PLAN_FORMAT
from kpg.columns.expression import Apply, ColumnReference, Expression, FunctionCall, Literal, Named, Written
from kpg.columns.expression_origin import ExpressionOrigin
from kpg.columns.schema import Schema, Type, parse_type
from kpg.errors import BadPlan, ProtocolError


def write_schema(schema: Schema) -> list[list[str]]:
    """Return the names and types of columns."""
    return [[name, str(type_)] for name, type_ in zip(schema.names, schema.types, strict=True)]


def read_schema(written: list[list[str]]) -> Schema:
    """Return the schema of some names and types."""
    return Schema(tuple(name for name, _ in written), tuple(parse_type(type_) for _, type_ in written))


def write_expression(expression: Expression) -> list[Any]:
    """Return an expression as nested lists."""
    match expression:
        case ColumnReference():
            return ["column", expression.name]
        case Literal():
            return ["literal", write_constant(expression.value)]
        case FunctionCall():
            options = [
                ["type", str(option)] if isinstance(option, Type) else
                write_expression(option) if isinstance(option, Expression) else ["option", write_constant(option)]
                for option in expression.options
            ]  # fmt: skip
            return ["call", expression.op, [write_expression(argument) for argument in expression.arguments], options]
        case Named():
            return ["named", expression.name, write_expression(expression.expression)]
        case Written():
            return ["written", write_origin(expression.origin), write_expression(expression.expression)]
        case Apply():
            arguments = [write_expression(argument) for argument in expression.arguments]
            name = name_of_function(expression.function)
            options = [write_constant(option) for option in expression.options]
            return ["apply", name, str(expression.returns), expression.kind, arguments, options]
    raise BadPlan(f"{expression!r} cannot be sent to a worker")


def read_expression(written: list[Any]) -> Expression:
    """Return the expression that nested lists describe."""
    match written:
        case ["column", str(name)]:
            return ColumnReference(name)
        case ["literal", value]:
            return Literal(read_constant(value))
        case ["call", str(op), arguments, options]:
            return FunctionCall(op, tuple(map(read_expression, arguments)), tuple(map(_read_option, options)))
        case ["named", str(name), inner]:
            return Named(read_expression(inner), name)
        case ["written", origin, inner]:
            return Written(read_expression(inner), read_origin(origin))
        case ["apply", str(name), str(returns), str(kind), arguments, options]:
            inputs = tuple(map(read_expression, arguments))
            constants = tuple(map(read_constant, options))
            return Apply(function_of_name(name), parse_type(returns), kind, inputs, constants)
    raise ProtocolError("the plan has an unknown kind of expression", detail=repr(written)[:200])


def write_origin(origin: ExpressionOrigin) -> list[Any]:
    """Return the source text of an expression as JSON."""
    return [origin.text, origin.at, origin.excerpt, [list(pair) for pair in origin.columns], origin.rule]


def read_origin(written: list[Any]) -> ExpressionOrigin:
    """Return the source text that JSON describes."""
    text, at, excerpt, columns, rule = written
    return ExpressionOrigin(
        str(text), str(at), str(excerpt), tuple((str(n), str(column)) for n, column in columns), str(rule)
    )


def _read_option(written: list[Any]) -> Any:
    match written:
        case ["type", str(name)]:
            return parse_type(name)
        case ["option", value]:
            return read_constant(value)
    return read_expression(written)


def write_constant(value: Any) -> Any:
    """Return a Python value as JSON; values without a JSON form are tagged with their kind."""
    match value:
        case np.generic():
            return write_constant(value.item())
        case None | bool() | int() | str():
            return value
    text = PLAN_FORMAT.of_value(value)
    if text is not None:
        return {text.tag: text.write(value)}
    raise BadPlan(f"a constant of type {type(value).__name__} cannot be sent to a worker", detail=repr(value)[:200])


def read_constant(written: Any) -> Any:
    """Return the Python value that JSON describes."""
    if not isinstance(written, dict):
        return written
    ((kind, value),) = written.items()
    text = PLAN_FORMAT.of_tag(kind)
    if text is not None:
        return text.read(value)
    raise ProtocolError(f"the plan has a constant of unknown kind {kind!r}")


def name_of_function(function: Callable[..., Any]) -> str:
    """Return the name that a worker can import a function by.

    An object with a `plan_form` (a function that makes it, and constants) is written as the call of that function.
    """
    form = getattr(function, "plan_form", None)
    if form is not None:
        return f"{name_of_function(form[0])}({json.dumps(form[1])})"
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if module and name and module != "__main__" and "<" not in name:
        imported: Any = sys.modules.get(module)
        for part in name.split("."):
            imported = getattr(imported, part, None)
        if imported is function:
            return f"{module}:{name}"
    raise BadPlan(
        f"{name or function!r} cannot be sent to workers",
        detail="Workers import functions by name; no code is sent to them.",
        hint="Define it at the top level of a module that workers can import, not in a script, function or lambda.",
    )


def function_of_name(name: str) -> Callable[..., Any]:
    """Import a function by its name."""
    if name.endswith(")"):
        maker, _, constants = name[:-1].partition("(")
        return function_of_name(maker)(*json.loads(constants))  # type: ignore[no-any-return]
    module, _, path = name.partition(":")
    try:
        function: Any = importlib.import_module(module)
        for part in path.split("."):
            function = getattr(function, part)
    except (ImportError, AttributeError) as error:
        raise BadPlan(
            f"a worker cannot import {name}",
            detail=str(error),
            hint="Install the module where the workers run, or put it on their path.",
        ) from None
    if not callable(function):
        raise BadPlan(f"{name} is not a function")
    return function  # type: ignore[no-any-return]

"""Records and functors for the Datalog oracle, in plain Python.

A record is a tuple of its functor and its fields: ("[]", 1, ("nil",)) is [1, nil]. `as_text` writes it as kpg's answers
do. Nothing here is shared with the rewrites or the lowering.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from kpg.query.ir.program import Program
from kpg.query.ir.terms import CallTerm, Term, VariableTerm, WildcardTerm

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(math, name) for name in ("sin", "cos", "tan", "atan", "sinh", "cosh", "tanh", "asinh", "exp")},
    "bshru": lambda a, b: (a % 2**64) >> b,
}


def is_record_term(term: Term) -> bool:
    """Return whether a term constructs a record."""
    return isinstance(term, CallTerm) and (term.functor in ("[]", "nil") or term.functor[0] == "$")


def call_value(functor: str, arguments: tuple[Any, ...]) -> Iterator[Any]:
    """Yield the result of a constructor or of a function of this file; raise ValueError for any other functor."""
    if functor in ("[]", "nil") or functor[0] == "$":
        yield (functor, *arguments)
    elif functor in FUNCTIONS:
        yield FUNCTIONS[functor](*arguments)
    else:
        raise ValueError(f"the oracle does not support the functor {functor}")


def match_pattern(term: Term, value: Any, env: dict[str, Any], later: list[tuple[Term, Any]]) -> bool:
    """Bind the variables of a pattern in `env`, and return whether it can match; add computed terms to `later`."""
    if isinstance(term, WildcardTerm):
        return True
    if isinstance(term, VariableTerm):
        return bool(env.setdefault(term.name, value) == value)
    if not is_record_term(term):
        later.append((term, value))
        return True
    assert isinstance(term, CallTerm)
    if value[0] != term.functor or len(value) != 1 + len(term.arguments):
        return False
    return all(match_pattern(part, field, env, later) for part, field in zip(term.arguments, value[1:], strict=True))


def convert_value(program: Program, value: Any, kind: str) -> Any:
    """Return a value with floats where its type has floats."""
    if kind == "float":
        return float(value)
    for constructor in program.constructors:
        if constructor.type == kind and isinstance(value, tuple) and constructor.functor == value[0]:
            pairs = zip(value[1:], constructor.kinds, strict=True)
            return (value[0], *(convert_value(program, field, inner) for field, inner in pairs))
    return value


def as_text(value: Any) -> Any:
    """Return a record as text; any other value unchanged."""
    if not isinstance(value, tuple):
        return value
    functor, *fields = value
    texts = [as_text(one) if isinstance(one, tuple) else scalar_text(one) for one in fields]
    if functor == "[]":
        return f"[{', '.join(texts)}]"
    return f"{functor}({', '.join(texts)})" if texts else functor


def scalar_text(value: Any) -> str:
    """Return a field that is not a record as text."""
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    return json.dumps(value, ensure_ascii=False)


def call_functor(functor: str, arguments: tuple[Any, ...]) -> Iterator[Any]:
    """Yield the results of a functor, given argument values."""
    match functor, arguments:
        case "+", (a, b):
            yield a + b
        case "-", (a, b):
            yield a - b
        case "*", (a, b):
            yield a * b
        case "/", (a, b):
            exact = isinstance(a, float) or isinstance(b, float)
            yield a / b if exact else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        case "%", (a, b):
            yield (abs(a) % abs(b)) * (-1 if a < 0 else 1)
        case "neg", (a,):
            yield -a
        case "min", _:
            yield min(arguments)
        case "max", _:
            yield max(arguments)
        case "cat", _:
            yield "".join(arguments)
        case "strlen", (a,):
            yield len(a)
        case "substr", (text, start, length):
            yield text[start : start + length] if start >= 0 else ""
        case "to_string", (a,):
            yield a if isinstance(a, str) else f"{a:f}" if isinstance(a, float) else str(a)
        case "to_number", (a,):
            yield int(a)
        case "to_float", (a,):
            yield float(a)
        case "range", (start, end, *by):
            step_by = by[0] if by else (1 if start <= end else -1)
            for number in count():
                value = start + number * step_by
                if step_by == 0:
                    yield from [start] if start != end else []
                    return
                if value >= end if step_by > 0 else value <= end:
                    return
                yield value
        case _:
            yield from call_value(functor, arguments)

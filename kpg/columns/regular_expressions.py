"""Regular expressions in Python's syntax: whether one matches, and the replacement of its matches.

They run once for each distinct combination of text and pattern in a batch. A constant that is not a regular expression
is an error of the query; a value that is none fails its row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from kpg.columns.bound_nodes import BindingScope, BoundNode, ConstantNode, adapt, any_nullable
from kpg.columns.coercion import refuse
from kpg.columns.expression import FunctionCall
from kpg.columns.schema import BOOL, STRING
from kpg.columns.text import MAX_TEXT_LENGTH, PerValueNode
from kpg.errors import TypeMismatch


def _matches(text: str, pattern: str) -> bool:
    return _search(pattern, text) is not None


def _search(pattern: str, text: str) -> Any:
    try:
        return re.search(pattern, text)
    except re.error as error:
        raise ValueError(str(error)) from None


def _replace(text: str, pattern: str, new: str) -> str:
    try:
        replaced = re.sub(pattern, new, text)
    except (re.error, IndexError) as error:
        raise ValueError(str(error)) from None
    if len(replaced) > MAX_TEXT_LENGTH:
        raise ValueError("too long")
    return replaced


def matches(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind str.matches."""
    texts = _strings(call, arguments, scope)
    code = 0 if _checked(call, texts[1:]) else scope.code("not a regular expression", call)
    return PerValueNode(BOOL.optional(any_nullable(texts)), texts, _matches, scope, code)


def replace_matches(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind str.replace_regex."""
    texts = _strings(call, arguments, scope)
    checked = _checked(call, texts[1:])
    reason = f"text longer than {MAX_TEXT_LENGTH:,}" if checked else "not a regular expression, or text too long"
    return PerValueNode(STRING.optional(any_nullable(texts)), texts, _replace, scope, scope.code(reason, call))


def _strings(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> list[BoundNode]:
    texts = [adapt(argument, STRING, scope) for argument in arguments]
    if any(text.type.kind != "string" for text in texts):
        refuse(call, arguments, 'Only strings are matched: .cast("string") the rest.')
    return texts


def _checked(call: FunctionCall, constants: Sequence[BoundNode]) -> bool:
    """Return whether pattern and replacement are constants; raise if they are and do not fit."""
    values = [node.value for node in constants if isinstance(node, ConstantNode) and node.value is not None]
    try:
        if len(values) == len(constants):
            re.compile(values[0])
            re.sub(values[0], values[-1] if len(values) > 1 else "", "")
    except (re.error, IndexError) as error:
        raise TypeMismatch(f"{values[0]!r} is not a regular expression", detail=f"{error}, in {call!r}.") from None
    return len(values) == len(constants)

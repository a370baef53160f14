"""The machine-readable schema (JSON Schema, draft 2020-12) of all messages, made from their classes.

`tools/protocol_schema.py` writes it to docs/protocol.schema.json; the server gives it out at `/schema`.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from typing import Annotated, Any, Literal, get_args, get_origin

from kpg.columns.column_types.tagged_text import MESSAGE_FORMAT
from kpg.protocol.messages import VERSION
from kpg.protocol.replies import PUSHED, REPLIES
from kpg.protocol.requests import REQUESTS
from kpg.protocol.strict_decoder import ANY_JSON, ROWS, VALUE, Between, Size, members, without_none
from kpg.protocol.value_codec import EXACT

SCALARS: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    float: {"type": "number"},
    int: {"type": "integer", "minimum": -EXACT, "maximum": EXACT},
}
TAGGED = [
    {"type": "object", "properties": {tag: {"type": "string"}}, "required": [tag], "additionalProperties": False}
    for tag in MESSAGE_FORMAT.tags
]


def schema() -> dict[str, Any]:
    """The schema: any message; `$defs` has one for each, and for requests, replies and what is pushed."""
    found: dict[str, Any] = {
        "Value": {"anyOf": [{"type": ["null", "boolean", "number", "string"]}, *TAGGED]},
        "Rows": {"type": "array", "items": {"type": "array", "items": {"$ref": "#/$defs/Value"}}},
    }
    groups = {"request": REQUESTS, "reply": REPLIES, "pushed": PUSHED}
    for group, kinds in groups.items():
        for kind in kinds:
            found[kind.kind] = object_of(kind, found, kind.kind)
        found[group] = {"oneOf": [{"$ref": f"#/$defs/{kind.kind}"} for kind in kinds]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"kpg protocol, version {VERSION}",
        "oneOf": [{"$ref": f"#/$defs/{group}"} for group in groups],
        "$defs": dict(sorted(found.items())),
    }


def object_of(shape: type, found: dict[str, Any], kind: str | None = None) -> dict[str, Any]:
    """The schema of a dataclass; `found` gathers those it holds."""
    properties: dict[str, Any] = {"type": {"const": kind}} if kind else {}
    required = ["type"] if kind else []
    for name, (annotation, needed) in members(shape).items():
        properties[name] = schema_of(annotation, found)
        required += [name] if needed else []
    return {
        "description": " ".join((inspect.getdoc(shape) or "").split()),
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def schema_of(shape: Any, found: dict[str, Any]) -> dict[str, Any]:
    """The schema of an annotation."""
    origin, arguments = get_origin(shape), get_args(shape)
    if origin is Annotated:
        return annotated(arguments, found)
    if origin in (types.UnionType, typing.Union):
        return {"anyOf": [schema_of(without_none(arguments), found), {"type": "null"}]}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is tuple:
        return {"type": "array", "items": schema_of(arguments[0], found)}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of(arguments[1], found)}
    if dataclasses.is_dataclass(shape):
        name = typing.cast(Any, shape).schema_name
        if name not in found:
            found[name] = {}
            found[name] = object_of(typing.cast(type, shape), found)
        return {"$ref": f"#/$defs/{name}"}
    return dict(SCALARS[shape])


def annotated(arguments: tuple[Any, ...], found: dict[str, Any]) -> dict[str, Any]:
    """The schema of an annotation with marks or bounds."""
    inner, *notes = arguments
    if VALUE in notes:
        return {"$ref": "#/$defs/Value"}
    if ROWS in notes:
        return {"$ref": "#/$defs/Rows"}
    if ANY_JSON in notes:
        return {}
    made = schema_of(inner, found)
    for note in notes:
        if isinstance(note, Size):
            words = ("minLength", "maxLength") if made["type"] == "string" else ("minItems", "maxItems")
            made |= dict(zip(words, (note.least, note.most), strict=True))
        if isinstance(note, Between):
            made |= {"minimum": note.least, "maximum": note.most}
    return made

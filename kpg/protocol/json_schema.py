"""The JSON Schema (draft 2020-12) of all messages, generated from their classes.

`tools/protocol_schema.py` writes it to docs/protocol.schema.json; the server offers it at `/schema`.
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
    """Return the schema of any message; `$defs` has one for each message, part and group."""
    definitions: dict[str, Any] = {
        "Value": {"anyOf": [{"type": ["null", "boolean", "number", "string"]}, *TAGGED]},
        "Rows": {"type": "array", "items": {"type": "array", "items": {"$ref": "#/$defs/Value"}}},
    }
    groups = {"request": REQUESTS, "reply": REPLIES, "pushed": PUSHED}
    for group, kinds in groups.items():
        for kind in kinds:
            definitions[kind.kind] = object_of(kind, definitions, kind.kind)
        definitions[group] = {"oneOf": [{"$ref": f"#/$defs/{kind.kind}"} for kind in kinds]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"kpg protocol, version {VERSION}",
        "oneOf": [{"$ref": f"#/$defs/{group}"} for group in groups],
        "$defs": dict(sorted(definitions.items())),
    }


def object_of(shape: type, definitions: dict[str, Any], kind: str | None = None) -> dict[str, Any]:
    """Return the schema of a dataclass; add the parts that it holds to `definitions`."""
    properties: dict[str, Any] = {"type": {"const": kind}} if kind else {}
    required = ["type"] if kind else []
    for name, (annotation, needed) in members(shape).items():
        properties[name] = schema_of(annotation, definitions)
        required += [name] if needed else []
    return {
        "description": " ".join((inspect.getdoc(shape) or "").split()),
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def schema_of(shape: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an annotation."""
    origin, arguments = get_origin(shape), get_args(shape)
    if origin is Annotated:
        return annotated(arguments, definitions)
    if origin in (types.UnionType, typing.Union):
        return {"anyOf": [schema_of(without_none(arguments), definitions), {"type": "null"}]}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is tuple:
        return {"type": "array", "items": schema_of(arguments[0], definitions)}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of(arguments[1], definitions)}
    if dataclasses.is_dataclass(shape):
        name = typing.cast(Any, shape).schema_name
        if name not in definitions:
            definitions[name] = {}
            definitions[name] = object_of(typing.cast(type, shape), definitions)
        return {"$ref": f"#/$defs/{name}"}
    return dict(SCALARS[shape])


def annotated(arguments: tuple[Any, ...], definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an annotation with a mark or bounds."""
    inner, *notes = arguments
    if VALUE in notes:
        return {"$ref": "#/$defs/Value"}
    if ROWS in notes:
        return {"$ref": "#/$defs/Rows"}
    if ANY_JSON in notes:
        return {}
    bounded = schema_of(inner, definitions)
    for note in notes:
        if isinstance(note, Size):
            words = ("minLength", "maxLength") if bounded["type"] == "string" else ("minItems", "maxItems")
            bounded |= dict(zip(words, (note.least, note.most), strict=True))
        if isinstance(note, Between):
            bounded |= {"minimum": note.least, "maximum": note.most}
    return bounded

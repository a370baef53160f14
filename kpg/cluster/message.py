"""Requests and replies between a client and a rank: a JSON object, and rows beside it.

    body  =  bytes of JSON, number of row blocks, the JSON, the blocks (see codec)

Errors in replies are written by `failure`.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from kpg.cluster import frame_codec
from kpg.cluster.failure import read_error as read_error
from kpg.cluster.failure import write_error as write_error
from kpg.cluster.frames import Buffer, padded
from kpg.columns.schema import Schema
from kpg.columns.updates import Ints, Updates
from kpg.errors import ProtocolError

REQUEST, REPLY = 16, 17


class Rows(NamedTuple):
    """Updates, and which of their lanes are text."""

    updates: Updates
    symbolic: tuple[int, ...]


def symbolic_lanes(schema: Schema) -> tuple[int, ...]:
    """The lanes of a schema that are text."""
    return tuple(lane for lane, type_ in enumerate(schema.types) if type_.is_symbolic)


def encode(content: dict[str, Any], blocks: Sequence[Rows], told: frame_codec.SymbolDictionary) -> list[Buffer]:
    """A message as the parts of a frame."""
    said = json.dumps(content, separators=(",", ":")).encode()
    parts: list[Buffer] = [struct.pack("<2q", len(said), len(blocks)), padded(said)]
    for block in blocks:
        parts += frame_codec.encode_updates(block.updates, block.symbolic, told)
    return parts


def decode(body: Ints, told: frame_codec.SymbolDictionary) -> tuple[dict[str, Any], list[Updates]]:
    """A message from the words of a frame."""
    if len(body) < 2:
        raise ProtocolError("a message is cut off")
    size, count = body[:2].tolist()
    words = -(-size // 8)
    if size < 0 or count < 0 or len(body) < 2 + words:
        raise ProtocolError("a message is cut off")
    try:
        content = json.loads(body[2 : 2 + words].tobytes()[:size])
    except ValueError as error:
        raise ProtocolError("a message is not JSON", detail=str(error)) from None
    if not isinstance(content, dict):
        raise ProtocolError("a message is not an object")
    at = 2 + words
    blocks: list[Updates] = []
    for _ in range(count):
        updates, at = frame_codec.decode_updates(body, at, told)
        blocks.append(updates)
    return content, blocks

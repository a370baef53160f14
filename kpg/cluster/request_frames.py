"""Requests and replies as frames: a JSON message, and blocks of rows beside it.

    body  =  number, bytes of JSON, number of blocks, the JSON, the blocks (see `frame_codec`)

    REQUEST   the JSON is a typed request (`kpg.protocol.definitions`)
    REPLY     the JSON is the value that the request's class declares as its result
    REFUSAL   the JSON is the error that ended the request (`kpg.protocol.error_messages`)
    REPORT    the JSON is a `RankReport` that a rank sends by itself; it has no number

A reply has the number of its request. A request without a number gets a reply only if it fails. Rows never pass through
JSON: a block is the columns as they are in memory.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from kpg.cluster import frame_codec
from kpg.cluster.frames import Buffer, padded
from kpg.columns.schema import Schema
from kpg.columns.updates import Ints, Updates
from kpg.errors import KpgError, ProtocolError
from kpg.protocol.definitions import MessageKinds, TypedRequest, result_annotation
from kpg.protocol.error_messages import error_of, failure_of
from kpg.protocol.message_codec import decode, dump_json, plain, read
from kpg.protocol.parts import FailureSpec
from kpg.protocol.strict_decoder import build, decoder_of

REQUEST, REPLY, REFUSAL, REPORT = 16, 17, 18, 19  # kinds of frames
HEADER = struct.Struct("<3q")  # number, bytes of JSON, number of blocks
UNNUMBERED = -1

Result = TypeVar("Result", covariant=True)


class RowBlock(NamedTuple):
    """Updates, and which of their lanes are text."""

    updates: Updates
    symbolic: tuple[int, ...]


class Answer(NamedTuple, Generic[Result]):
    """The result of a request, as its handler returns it."""

    value: Result
    blocks: Sequence[RowBlock] = ()


class IncomingMessage(NamedTuple):
    """A frame before its JSON is interpreted. Its blocks are decoded: their texts must be learned in order."""

    number: int  # of the request; UNNUMBERED if there is none
    text: str
    blocks: list[Updates]


class IncomingRequest(NamedTuple):
    """A request that arrived; an error in its place if it could not be decoded."""

    number: int
    request: Any  # a TypedRequest, or the ProtocolError to answer with
    blocks: list[Updates]


def symbolic_lanes(schema: Schema) -> tuple[int, ...]:
    """Return the lanes of a schema that are text."""
    return schema.symbolic_lanes()


def encode_frame(
    number: int, text: str, blocks: Sequence[RowBlock], dictionary: frame_codec.SymbolDictionary
) -> list[Buffer]:
    """Return a message as the parts of a frame."""
    json_bytes = text.encode()
    parts: list[Buffer] = [HEADER.pack(number, len(json_bytes), len(blocks)) + padded(json_bytes)]
    for block in blocks:
        parts += frame_codec.encode_updates(block.updates, block.symbolic, dictionary)
    return parts


def encode_refusal(error: BaseException) -> str:
    """Return the JSON of an error."""
    return dump_json(plain(failure_on_worker(error)))


def failure_on_worker(error: BaseException) -> FailureSpec:
    """Return the description of an error. Processes of one db trust each other, so a foreign error keeps its text."""
    if not isinstance(error, KpgError):
        error = KpgError(f"a worker failed: {type(error).__name__}", detail=str(error))
    return failure_of(error)


def decode_frame(body: Ints, dictionary: frame_codec.SymbolDictionary) -> IncomingMessage:
    """Return the message in the words of a frame."""
    if len(body) < 3:
        raise ProtocolError("a message is cut off")
    number, size, count = body[:3].tolist()
    words = -(-size // 8)
    if size < 0 or count < 0 or len(body) < 3 + words:
        raise ProtocolError("a message is cut off")
    try:
        text = body[3 : 3 + words].tobytes()[:size].decode()
    except UnicodeDecodeError as error:
        raise ProtocolError("a message is not UTF-8", detail=str(error)) from None
    position = 3 + words
    blocks: list[Updates] = []
    for _ in range(count):
        updates, position = frame_codec.decode_updates(body, position, dictionary)
        blocks.append(updates)
    return IncomingMessage(number, text, blocks)


def decode_request(body: Ints, dictionary: frame_codec.SymbolDictionary, kinds: MessageKinds[Any]) -> IncomingRequest:
    """Return the request in a frame. A frame of impossible shape raises; a message of no meaning is to be answered."""
    number, text, blocks = decode_frame(body, dictionary)
    request: Any
    try:
        request = decode(text, kinds)
    except ProtocolError as error:
        request = error
    return IncomingRequest(number, request, blocks)


def decode_result(request: TypedRequest[Result], text: str) -> Result:
    """Return the result of a request from the JSON of its reply."""
    shape: Any = type(request)
    annotation: Any = result_annotation(shape)
    result: Result = decoder_of(annotation)(read(text, python_only=True), "$")
    return result


def decode_refusal(text: str) -> KpgError:
    """Return the error in the JSON of a refusal."""
    return error_of(build(FailureSpec, read(text, python_only=True), "$"))

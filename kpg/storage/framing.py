"""Frames: how records lie in a segment of the log, and how a reader tells a torn end from damage.

    segment  =  head, frame, frame, ..., zeros            head: magic, version, salt, number of the first frame
    frame    =  mark, checksum of the header, number, forced, length, checksum of the payload; then the payload
    payload  =  (length, record) ...                      one group of transactions: all of it or nothing

`forced` says how many bytes of the segment were known to be on disk when the frame was written. So a frame that cannot
be read was acknowledged exactly if some later frame's `forced` lies beyond it, or another segment follows: that is
damage. Otherwise the writer died over it, and it is cut off. The salt is drawn for each segment and enters the
checksum of headers, so that no row can look like a frame.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from zlib import crc32

from kpg.errors import Corrupt

MAGIC = b"kpg log\0"
VERSION = 1
MARK = b"\xf5kpg"
HEAD = struct.Struct("<8sIIQI4x")  # magic, version, salt, number of the first frame, checksum of these
HEADER = struct.Struct("<4sIQQQII")  # mark, checksum of what follows, number, forced, length, checksum, unused
LENGTH = struct.Struct("<Q")


def segment_head(first: int) -> tuple[bytes, int]:
    """The first bytes of a segment, and its salt."""
    salt = int.from_bytes(os.urandom(4), "little")
    fields = struct.pack("<8sIIQ", MAGIC, VERSION, salt, first)
    return fields + struct.pack("<I4x", crc32(fields)), salt


def frame(records: Sequence[bytes], number: int, forced: int, salt: int) -> list[bytes]:
    """One group of records, as it is written: parts that follow each other, for a record may be too large to copy."""
    parts = [b""]
    checksum = 0
    for record in records:
        length = LENGTH.pack(len(record))
        checksum = crc32(record, crc32(length, checksum))
        parts += (length, record)
    fields = struct.pack("<QQQII", number, forced, sum(map(len, parts)), checksum, 0)
    parts[0] = b"".join((MARK, struct.pack("<I", crc32(fields, salt)), fields))
    return parts


@dataclass(frozen=True, slots=True)
class FrameScan:
    """What a segment holds: its frames' records, where they end, and whether something torn follows."""

    first: int
    groups: tuple[tuple[bytes, ...], ...]
    end: int
    torn: bool


def scan(data: bytes, name: str, first: int, last: bool) -> FrameScan:
    """Read a segment that begins with frame `first`; only the last segment of a log may have a torn end."""
    if not _is_head(data, name, first):
        if last:
            return FrameScan(first, (), 0, torn=True)
        raise Corrupt(f"{name} is damaged at offset 0", detail="Its head cannot be read, and segments follow it.")
    salt = HEAD.unpack_from(data)[2]
    groups: list[tuple[bytes, ...]] = []
    at = HEAD.size
    while (found := _frame_at(data, at, first + len(groups), salt)) is not None:
        groups.append(tuple(_records(found)))
        at += HEADER.size + len(found)
    blank = data.count(b"\0", at) == len(data) - at
    if not blank and (not last or _forced_beyond(data, at, salt)):
        raise Corrupt(
            f"{name} is damaged at offset {at}",
            detail="What follows was on disk after it, so this is not the torn end of a crash.",
            hint="Restore the directory from a copy.",
        )
    return FrameScan(first, tuple(groups), at, torn=not blank)


def _is_head(data: bytes, name: str, first: int) -> bool:
    if len(data) < HEAD.size:
        return False
    magic, version, _, number, checksum = HEAD.unpack_from(data)
    if crc32(data[: HEAD.size - 8]) != checksum or magic != MAGIC or number != first:
        return False
    if version != VERSION:
        raise Corrupt(f"{name} is a log of another version", detail=f"Found {version}, expected {VERSION}.")
    return True


def _frame_at(data: bytes, at: int, number: int, salt: int) -> bytes | None:
    """The payload of the frame at an offset, if it is whole and the one expected."""
    header = _header_at(data, at, salt)
    if header is None or header[0] != number:
        return None
    payload = data[at + HEADER.size : at + HEADER.size + header[2]]
    return payload if len(payload) == header[2] and crc32(payload) == header[3] else None


def _header_at(data: bytes, at: int, salt: int) -> tuple[int, int, int, int] | None:
    """Number, forced, length and checksum of the header at an offset, if there is one."""
    if len(data) < at + HEADER.size or data[at : at + 4] != MARK:
        return None
    _, checksum, number, forced, length, payload_checksum, _ = HEADER.unpack_from(data, at)
    if crc32(data[at + 8 : at + HEADER.size], salt) != checksum:
        return None
    return number, forced, length, payload_checksum


def _forced_beyond(data: bytes, at: int, salt: int) -> bool:
    """Whether a later frame was written when the bytes at an offset were on disk already."""
    place = data.find(MARK, at + 1)
    while place >= 0:
        header = _header_at(data, place, salt)
        if header is not None and header[1] > at:
            return True
        place = data.find(MARK, place + 1)
    return False


def _records(payload: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(payload):
        (length,) = LENGTH.unpack_from(payload, at)
        at += LENGTH.size
        yield payload[at : at + length]
        at += length

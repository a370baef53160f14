"""Frames: the layout of records in a segment of the log. A reader can distinguish a torn end from damage.

    segment  =  head, frame, frame, ..., zeros            head: magic, version, salt, number of the first frame
    frame    =  mark, checksum of the header, number, forced, length, checksum of the payload; then the payload
    payload  =  (length, record) ...                      one group of transactions: all of it or nothing

`forced` is the number of bytes of the segment that were known to be on disk when the frame was written. So an
unreadable frame was acknowledged if and only if `forced` of some later frame lies beyond it, or another segment
follows. That is damage. Otherwise the process died while it wrote the frame, and the reader cuts the frame off. The
salt is a random number for each segment. It is part of the checksum of headers, so that the bytes of a row cannot pass
for a frame.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from zlib import crc32

from kpg.errors import Corrupt

MAGIC = b"kpg log\0"  # the first bytes of a segment
VERSION = 1  # of the layout
MARK = b"\xf5kpg"  # the first bytes of a frame
HEAD = struct.Struct("<8sIIQI4x")  # magic, version, salt, number of the first frame, checksum of these
HEADER = struct.Struct("<4sIQQQII")  # mark, checksum of the rest, number, forced, length, checksum, unused
LENGTH = struct.Struct("<Q")  # the number of bytes of a record


def encode_head(first: int) -> tuple[bytes, int]:
    """Return the first bytes of a new segment that begins with frame `first`, and its salt."""
    salt = int.from_bytes(os.urandom(4), "little")
    fields = struct.pack("<8sIIQ", MAGIC, VERSION, salt, first)
    return fields + struct.pack("<I4x", crc32(fields)), salt


def encode_frame(records: Sequence[bytes], number: int, forced: int, salt: int) -> list[bytes]:
    """Return the frame of a group of records, in parts to write one after another: large records are not copied."""
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
    """The content of a segment: the records of each frame, the offset of their end, and whether a torn end follows."""

    first: int
    groups: tuple[tuple[bytes, ...], ...]
    end: int
    torn: bool


def scan_segment(data: bytes, name: str, first: int, last: bool) -> FrameScan:
    """Read a segment that begins with frame `first`. Only the last segment of a log may have a torn end."""
    if not _is_head(data, name, first):
        if last:
            return FrameScan(first, (), 0, torn=True)
        raise Corrupt(f"{name} is damaged at offset 0", detail="Its head cannot be read, and segments follow it.")
    salt = HEAD.unpack_from(data)[2]
    groups: list[tuple[bytes, ...]] = []
    offset = HEAD.size
    while (payload := _payload_at(data, offset, first + len(groups), salt)) is not None:
        groups.append(tuple(_records(payload)))
        offset += HEADER.size + len(payload)
    blank = data.count(b"\0", offset) == len(data) - offset
    if not blank and (not last or _is_forced(data, offset, salt)):
        raise Corrupt(
            f"{name} is damaged at offset {offset}",
            detail="Later frames show that these bytes were on disk, so this is not the torn end of a crash.",
            hint="Restore the directory from a copy.",
        )
    return FrameScan(first, tuple(groups), offset, torn=not blank)


def _is_head(data: bytes, name: str, first: int) -> bool:
    if len(data) < HEAD.size:
        return False
    magic, version, _, number, checksum = HEAD.unpack_from(data)
    if crc32(data[: HEAD.size - 8]) != checksum or magic != MAGIC or number != first:
        return False
    if version != VERSION:
        raise Corrupt(f"{name} is a log of another version", detail=f"Found {version}, expected {VERSION}.")
    return True


def _payload_at(data: bytes, offset: int, number: int, salt: int) -> bytes | None:
    """Return the payload of the frame at an offset, if that frame is whole and has the expected number."""
    header = _header_at(data, offset, salt)
    if header is None or header[0] != number:
        return None
    payload = data[offset + HEADER.size : offset + HEADER.size + header[2]]
    return payload if len(payload) == header[2] and crc32(payload) == header[3] else None


def _header_at(data: bytes, offset: int, salt: int) -> tuple[int, int, int, int] | None:
    """Return number, forced, length and payload checksum of the header at an offset, None if it is not one."""
    if len(data) < offset + HEADER.size or data[offset : offset + 4] != MARK:
        return None
    _, checksum, number, forced, length, payload_checksum, _ = HEADER.unpack_from(data, offset)
    if crc32(data[offset + 8 : offset + HEADER.size], salt) != checksum:
        return None
    return number, forced, length, payload_checksum


def _is_forced(data: bytes, offset: int, salt: int) -> bool:
    """Return whether a later frame says that the bytes at an offset were on disk when it was written."""
    mark = data.find(MARK, offset + 1)
    while mark >= 0:
        header = _header_at(data, mark, salt)
        if header is not None and header[1] > offset:
            return True
        mark = data.find(MARK, mark + 1)
    return False


def _records(payload: bytes) -> Iterator[bytes]:
    offset = 0
    while offset < len(payload):
        (length,) = LENGTH.unpack_from(payload, offset)
        offset += LENGTH.size
        yield payload[offset : offset + length]
        offset += length

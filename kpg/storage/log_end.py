"""The end of the log, noted in a file of its own: the last segment, and the number of frames that must be readable.

    log-end   one line of JSON and one line with its checksum: {"segment": its first frame, "frames": a number}

A log cannot show by itself that its newest segment, or the end of it, was removed. So the log writes the note when a
segment is in place, before the first frame in it is acknowledged, and once more when it is closed. At opening, every
frame before `frames` and the segment itself must exist. A crash leaves a note that is older than the log, never one
that is ahead of it. Frames that were acknowledged after the last note are not covered. Cost: two waits for the disk for
each segment.

Directories of kpg 0.1 and object stores have no such note, and are not checked.
"""

from __future__ import annotations

import json
from typing import Final, NamedTuple
from zlib import crc32

from kpg.errors import Corrupt
from kpg.storage.file_store import Files

NAME: Final = "log-end"  # literal on disk, as the members are


class LogEnd(NamedTuple):
    """What must exist of a log."""

    segment: int  # the number of its first frame
    frames: int  # all frames before this number were acknowledged


def write_log_end(files: Files, end: LogEnd) -> None:
    """Note the end of the log."""
    body = json.dumps({"segment": end.segment, "frames": end.frames}).encode()
    files.write(NAME, [b"%s\n%08x\n" % (body, crc32(body))])


def read_log_end(files: Files) -> LogEnd | None:
    """Return the noted end; None if there is no note."""
    if NAME not in files.names():
        return None
    body, _, rest = files.read(NAME).partition(b"\n")
    if rest != b"%08x\n" % crc32(body):
        raise Corrupt(
            f"{files.location}/{NAME} is damaged",
            detail="It notes where the log ends.",
            hint="If the log files are intact, remove it; then the end of the log is not checked.",
        )
    written = json.loads(body)
    return LogEnd(written["segment"], written["frames"])


def check_log_end(files: Files, end: LogEnd | None, newest: int, next_frame: int) -> None:
    """Raise if the log ends before its noted end: at frame `next_frame`, with the segment `newest` as its last."""
    if end is not None and (newest < end.segment or next_frame < end.frames):
        raise Corrupt(
            f"{files.location} lacks the end of its log",
            detail=f"Acknowledged transactions from frame {next_frame} on are gone; its last segment began with frame "
            f"{end.segment} and was removed, emptied or cut.",
            hint="Restore the directory from a copy.",
        )

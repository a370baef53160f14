"""The log: records in the order of their acknowledgement. If several threads wait, their records share a frame.

    group = log.append(record)      assign the record its position in the log
    group = log.begin(record)       the same; write it and start to force it, without waiting for the disk
    log.sync(group)                 return when the record is on disk; or raise, and then the record is not in the log

While one thread waits for the disk, others append; their records become the next frame (group commit). With durability
"relaxed", a record is acknowledged when the operating system has it: it survives a crash of the process, but not of the
machine. A segment is named after its first frame. The log begins a new segment when the last one is full, at each
checkpoint and after recovery.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Literal

from kpg.errors import Closed, Corrupt, KpgError, Unavailable
from kpg.storage.file_store import Files, Segment
from kpg.storage.framing import encode_frame, encode_head, scan_segment
from kpg.storage.log_end import LogEnd, check_log_end, read_log_end, write_log_end

Durability = Literal["commit", "relaxed"]
SEGMENT_BYTES = 16 << 20  # a segment above this is full: recovery reads whole segments into memory


def segment_name(first: int) -> str:
    """Return the file name of the segment that begins with frame `first`."""
    return f"log-{first:016d}.kpg"


def first_frame_of(name: str) -> int | None:
    """Return the first frame of a segment by its file name, None for other files."""
    digits = name.removeprefix("log-").removesuffix(".kpg")
    return int(digits) if name == f"log-{digits}.kpg" and digits.isdecimal() else None


class CommitGroup:
    """The records of one frame, and the outcome of writing it."""

    __slots__ = ("records", "done", "error")

    def __init__(self) -> None:
        self.records: list[bytes] = []
        self.done = False
        self.error: KpgError | None = None


class TransactionLog:
    """The end of the log, where threads append records.

    At any time at most one thread is the *leader*: it writes a frame or waits for the disk, on behalf of all threads.
    """

    def __init__(
        self, files: Files, next_frame: int, durability: Durability = "commit", segment_bytes: int = SEGMENT_BYTES
    ) -> None:
        self._files = files
        self._durability = durability
        self._segment_bytes = segment_bytes
        self._segment: Segment | None = None
        self._salt = 0
        self._lock = threading.Lock()
        self._leader_done = threading.Condition(self._lock)
        self._waiting_threads = 0  # usually 0; then no notification is needed
        self._has_leader = False
        self._unwritten: CommitGroup | None = None
        self._unforced: CommitGroup | None = None  # written, perhaps not on disk
        self._closed = self._broken = False
        self._noted_segment: int | None = None  # the first frame of the last segment that this log began
        self.next_frame = next_frame
        self.written_bytes = 0
        self.frames = 0  # frames written, each forced once

    def append(self, record: bytes) -> CommitGroup:
        """Assign a record its position in the log; return its group."""
        with self._lock:
            return self._append(record)

    def begin(self, record: bytes) -> CommitGroup:
        """Assign a record its position in the log, and write its group unless a frame is on its way to disk already."""
        with self._lock:
            group = self._append(record)
            if self._has_leader or self._unforced is not None:
                return group
            self._unwritten, self._has_leader = None, True
        try:
            self._write_group(group)
        finally:
            self._stop_leading()
        return group

    def _append(self, record: bytes) -> CommitGroup:
        if self._closed:
            raise Closed("the log is closed")
        group = self._unwritten
        if group is None:
            group = self._unwritten = CommitGroup()
        group.records.append(record)
        return group

    def sync(self, group: CommitGroup) -> None:
        """Wait until a group is on disk; raise its error if it could not be written."""
        while True:
            with self._lock:
                while self._has_leader and not group.done:
                    self._waiting_threads += 1
                    self._leader_done.wait()
                    self._waiting_threads -= 1
                if group.done:
                    break
                self._has_leader = True
            try:
                if self._unforced is None:
                    self._write_group(self._take_unwritten())
                self._wait_for_disk()
            finally:
                self._stop_leading()
        if group.error is not None:
            raise group.error

    def _stop_leading(self) -> None:
        with self._lock:
            self._has_leader = False
            if self._waiting_threads:
                self._leader_done.notify_all()

    def _take_unwritten(self) -> CommitGroup:
        with self._lock:
            group, self._unwritten = self._unwritten, None
        assert group is not None
        return group

    def _write_group(self, group: CommitGroup) -> None:
        """Write a group as a frame. The caller must be the leader."""
        try:
            segment = self._current_segment()
            frame = encode_frame(group.records, self.next_frame, segment.forced, self._salt)
            if self._durability == "commit":
                segment.begin_append(frame)
            else:
                segment.append(frame)
        except BaseException as error:
            self._finish_group(group, error)
            return
        self._unforced = group
        self.next_frame += 1
        self.frames += 1
        self.written_bytes += sum(map(len, frame))

    def _wait_for_disk(self) -> None:
        """Wait until the written group is on disk. The caller must be the leader."""
        group, self._unforced = self._unforced, None
        if group is None:
            return
        try:
            if self._durability == "commit":
                assert self._segment is not None
                self._segment.wait_flush()
        except BaseException as error:
            self._finish_group(group, error)
            return
        self._finish_group(group, None)

    def _finish_group(self, group: CommitGroup, error: BaseException | None) -> None:
        with self._lock:
            group.done = True
            group.records = []
            if error is not None:
                group.error = error if isinstance(error, KpgError) else KpgError(f"the log failed: {error!r}")
        if error is not None and not isinstance(error, KpgError):
            self._broken = True  # an interrupt such as Ctrl-C leaves an unknown part of the frame on disk
            raise error

    def _current_segment(self) -> Segment:
        """Return the segment for the next frame, a new one if the last is full."""
        if self._broken:
            raise Unavailable("a write to the log was interrupted", hint="Close the db and open it again.")
        full = self._segment is not None and self._segment.end >= self._segment_bytes
        if self._segment is not None and (full or (not self._files.can_append and self.frames)):
            self._end_segment()
        if self._segment is None:
            self._segment = self._begin_segment(self.next_frame)
        return self._segment

    def _begin_segment(self, first: int) -> Segment:
        """Create a segment, and note that it exists before a frame in it is acknowledged."""
        head, self._salt = encode_head(first)
        segment = self._files.create_segment(segment_name(first), head)
        if self._files.can_append:
            try:
                write_log_end(self._files, LogEnd(first, first))
            except BaseException:
                segment.close()
                raise
            self._noted_segment = first
        return segment

    def _end_segment(self) -> None:
        """Force and close the segment, with any durability: only the last segment may have a torn end."""
        segment = self._segment
        if segment is not None:
            segment.begin_flush()
            segment.wait_flush()
            segment.close()
            self._segment = None

    def end_segment(self) -> int:
        """End the segment with everything in it on disk; return the number of the next frame."""
        self._drain()
        self._end_segment()
        return self.next_frame

    def _drain(self) -> None:
        """Wait until every appended record is on disk."""
        while True:
            with self._lock:
                group = self._unforced or self._unwritten
            if group is None:
                return
            self.sync(group)

    def close(self) -> None:
        """Write and force the waiting records, then refuse further ones; a second call has no effect."""
        if self._closed:
            return
        try:
            self._drain()
            self._end_segment()
            self._note_end()
        finally:
            self._closed = True
            if self._segment is not None:
                self._segment.close()

    def _note_end(self) -> None:
        """Note that all frames are acknowledged, so that the next opening can check that they are there."""
        if self._noted_segment is not None:
            with suppress(Unavailable):  # the disk is full: the note at the beginning of the segment stays
                write_log_end(self._files, LogEnd(self._noted_segment, self.next_frame))


def read_log(files: Files, first: int) -> Iterator[tuple[bytes, ...]]:
    """Yield the groups from frame `first` on. Cut off a torn end; raise Corrupt for damage, and for a missing end."""
    end = read_log_end(files)
    segments = sorted(number for name in files.names() if (number := first_frame_of(name)) is not None)
    older = [number for number in segments if number <= first]
    needed = segments[max(0, len(older) - 1) :]
    expected = needed[0] if needed and needed[0] <= first else first
    for index, number in enumerate(needed):
        name = segment_name(number)
        if number != expected:
            missing = f"frames {expected} to {number - 1}"
            raise Corrupt(f"{files.location} lacks {missing} of its log", detail=f"The next segment is {name}.")
        last = index == len(needed) - 1
        segment = scan_segment(files.read(name), f"{files.location}/{name}", number, last)
        expected = number + len(segment.groups)
        if last:
            newest = number if segment.end else number - 1  # a segment without a readable head counts as missing
            check_log_end(files, end, max(newest, first - 1), max(expected, first))
        if segment.torn:
            files.truncate(name, segment.end)
        yield from segment.groups[max(0, first - number) :]
    if not needed:
        check_log_end(files, end, first - 1, first)


def remove_segments_before(files: Files, first: int) -> None:
    """Remove the segments that hold only frames before `first`."""
    segments = sorted(number for name in files.names() if (number := first_frame_of(name)) is not None)
    for number, following in zip(segments, segments[1:], strict=False):
        if following <= first:
            files.remove(segment_name(number))

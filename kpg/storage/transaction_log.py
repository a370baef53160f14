"""The log: records in the order they were acknowledged, several to a frame when several threads wait.

    group = log.append(record)      take a place in the order
    log.begin()                     write what waits and have it forced to disk, without waiting for the disk
    log.sync(group)                 return when the record is on disk, or raise: then it is not in the log

While one thread waits for the disk others append; all they appended becomes the next frame. With durability "relaxed"
a record counts when the system has it: it outlives the process, not the machine. Segments are named after their first
frame; a new one is begun when the last is full, at each checkpoint and after each recovery.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Literal

from kpg.errors import Closed, Corrupt, KpgError, Unavailable
from kpg.storage.file_store import Files, Segment
from kpg.storage.framing import frame, scan, segment_head

Durability = Literal["commit", "relaxed"]
SEGMENT_BYTES = 16 << 20


def segment_name(first: int) -> str:
    """What a segment is called."""
    return f"log-{first:016d}.kpg"


def first_of(name: str) -> int | None:
    """The first frame of a segment, by its name; None for other files."""
    digits = name.removeprefix("log-").removesuffix(".kpg")
    return int(digits) if name == f"log-{digits}.kpg" and digits.isdecimal() else None


class CommitGroup:
    """Records that become one frame, and what became of them."""

    __slots__ = ("records", "done", "error")

    def __init__(self) -> None:
        self.records: list[bytes] = []
        self.done = False
        self.error: KpgError | None = None


class TransactionLog:
    """Where records are appended."""

    def __init__(
        self, files: Files, next_frame: int, durability: Durability = "commit", segment_bytes: int = SEGMENT_BYTES
    ) -> None:
        self._files = files
        self._durability = durability
        self._segment_bytes = segment_bytes
        self._segment: Segment | None = None
        self._salt = 0
        self._lock = threading.Lock()
        self._turn = threading.Condition(self._lock)
        self._waiting = 0  # threads that wait for their turn: mostly none, and then nobody is told
        self._leading = False  # whether some thread writes or waits for the disk
        self._next: CommitGroup | None = None  # what is not written yet
        self._flying: CommitGroup | None = None  # written, perhaps not on disk
        self._closed = self._broken = False
        self.next_frame = next_frame
        self.written_bytes = 0
        self.frames = 0  # how many were written, each forced once

    def append(self, record: bytes) -> CommitGroup:
        """Give a record its place."""
        with self._lock:
            if self._closed:
                raise Closed("the log is closed")
            if self._next is None:
                self._next = CommitGroup()
            self._next.records.append(record)
            return self._next

    def begin(self) -> None:
        """Write what waits, unless a frame is on its way already."""
        with self._lock:
            if self._leading or self._flying is not None or self._next is None:
                return
            self._leading = True
        try:
            self._launch()
        finally:
            self._hand_over()

    def sync(self, group: CommitGroup) -> None:
        """Wait until a group is on disk."""
        while True:
            with self._lock:
                while self._leading and not group.done:
                    self._waiting += 1
                    self._turn.wait()
                    self._waiting -= 1
                if group.done:
                    break
                self._leading = True
            try:
                if self._flying is None:
                    self._launch()
                self._land()
            finally:
                self._hand_over()
        if group.error is not None:
            raise group.error

    def _hand_over(self) -> None:
        with self._lock:
            self._leading = False
            if self._waiting:
                self._turn.notify_all()

    def _launch(self) -> None:
        """Write the next group; the caller leads."""
        with self._lock:
            group, self._next = self._next, None
        assert group is not None
        try:
            segment = self._room()
            written = frame(group.records, self.next_frame, segment.forced, self._salt)
            segment.append(written)
            if self._durability == "commit":
                segment.begin()
        except BaseException as error:
            self._settle(group, error)
            return
        self._flying = group
        self.next_frame += 1
        self.frames += 1
        self.written_bytes += sum(map(len, written))

    def _land(self) -> None:
        """Wait for the group that was written; the caller leads."""
        group, self._flying = self._flying, None
        if group is None:
            return
        try:
            if self._durability == "commit":
                assert self._segment is not None
                self._segment.wait()
        except BaseException as error:
            self._settle(group, error)
            return
        self._settle(group, None)

    def _settle(self, group: CommitGroup, error: BaseException | None) -> None:
        with self._lock:
            group.done = True
            group.records = []
            if error is not None:
                group.error = error if isinstance(error, KpgError) else KpgError(f"the log failed: {error!r}")
        if error is not None and not isinstance(error, KpgError):  # Ctrl-C: how much was written is not known
            self._broken = True
            raise error

    def _room(self) -> Segment:
        """The segment that takes the next frame."""
        if self._broken:
            raise Unavailable("the log was stopped in the middle", hint="Close the db and open it again.")
        full = self._segment is not None and self._segment.end >= self._segment_bytes
        if self._segment is not None and (full or (not self._files.grows and self.frames)):
            self._end_segment()
        if self._segment is None:
            head, self._salt = segment_head(self.next_frame)
            self._segment = self._files.segment(segment_name(self.next_frame), head)
        return self._segment

    def _end_segment(self) -> None:
        """Force the segment, whatever the durability: only the last one may have a torn end."""
        segment = self._segment
        if segment is not None:
            segment.begin()
            segment.wait()
            segment.close()
            self._segment = None

    def roll(self) -> int:
        """End the segment, everything in it on disk; the number of the frame that comes next."""
        self._drain()
        self._end_segment()
        return self.next_frame

    def _drain(self) -> None:
        """Wait until nothing is left to write."""
        while True:
            with self._lock:
                group = self._flying or self._next
            if group is None:
                return
            self.sync(group)

    def close(self) -> None:
        """Write what waits, force it, and take no more; may be repeated."""
        if self._closed:
            return
        try:
            self._drain()
            self._end_segment()
        finally:
            self._closed = True
            if self._segment is not None:
                self._segment.close()


def read_log(files: Files, first: int) -> Iterator[tuple[bytes, ...]]:
    """The groups from frame `first` on; a torn end is cut off, damage elsewhere is refused."""
    segments = sorted(number for name in files.names() if (number := first_of(name)) is not None)
    older = [number for number in segments if number <= first]
    needed = segments[max(0, len(older) - 1) :]
    expected = needed[0] if needed and needed[0] <= first else first
    for place, number in enumerate(needed):
        name = segment_name(number)
        if number != expected:
            missing = f"frames {expected} to {number - 1}"
            raise Corrupt(f"{files.place} lacks {missing} of its log", detail=f"The next segment is {name}.")
        found = scan(files.read(name), f"{files.place}/{name}", number, last=place == len(needed) - 1)
        if found.torn:
            files.cut(name, found.end if found.groups else 0)
        yield from found.groups[max(0, first - number) :]
        expected = number + len(found.groups)


def drop_before(files: Files, first: int) -> None:
    """Remove the segments that hold only frames before `first`."""
    segments = sorted(number for name in files.names() if (number := first_of(name)) is not None)
    for number, following in zip(segments, segments[1:], strict=False):
        if following <= first:
            files.remove(segment_name(number))

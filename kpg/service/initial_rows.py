"""The rows of a maintained answer for the interests that have just joined it, read while the answer goes on changing.

    the rows as of epoch t  +  the changes after t  =  what each interest receives

    rows.add(interest)         it has joined
    rows.serve(interest)       begin to read if the answer is complete; return whether the interest has its rows
    rows.note(updates)         changes of the answer, which follow the rows that are being read
    rows.wait_for(interest)    return when it has its rows

A read runs as a request of its own, so that other clients of a server do not wait for a large one. It begins when all
changes through t are passed on, keeps those that arrive meanwhile, and serves all interests that have joined by its
end. It begins again if t is compacted before workers read it. Before the first read the answer passes no changes on:
the rows include them.
Cost: one read of the answer for all interests that wait for it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kpg.api.unread_parts import split_at
from kpg.columns.updates import Updates, concatenate
from kpg.errors import KpgError, TimeTooEarly
from kpg.service.subscription import Interest

if TYPE_CHECKING:
    from kpg.api.contracts import Output


@dataclass(slots=True, eq=False)
class RowRead:
    """A read of the rows as of an epoch, and the changes that have arrived since it began."""

    epoch: int
    later: list[Updates] = field(default_factory=list)


class InitialRows:
    """The interests in an answer that have no rows yet, and the read that brings them."""

    def __init__(self, output: Output, begin: Callable[[list[Interest]], None]) -> None:
        self._output = output
        self._begin = begin  # called with interests that have their rows, and need the changes that follow
        self._waiting: list[Interest] = []
        self._read: RowRead | None = None  # the latest one, until it has ended
        self._request: Future[None] | None = None  # of the request that reads: done at its end

    def __contains__(self, interest: Interest) -> bool:
        return interest in self._waiting

    def add(self, interest: Interest) -> None:
        """Let an interest wait for its rows."""
        self._waiting.append(interest)

    def remove(self, interest: Interest) -> None:
        """Forget an interest that has left."""
        self._waiting.remove(interest)

    def note(self, updates: Updates) -> None:
        """Keep changes of the answer for the interests whose rows are being read."""
        if self._read is not None:
            self._read.later.append(updates)

    def serve(self, interest: Interest) -> bool:
        """Begin to read if the answer is complete and is not read yet.

        Return whether an interest has its rows, or gets none because the answer has ended.
        """
        if interest in self._waiting and self._request is None and self._output.answered:
            if not self._output.db.answers_lag:
                self._read_rows()
            elif not self._output.ended:
                self._output.db.start_request(self._serve_all)
        return interest not in self._waiting or self._output.ended

    def wait_for(self, interest: Interest) -> None:
        """Return when an interest has its rows; the answer is complete."""
        while not self.serve(interest):
            if self._request is not None and self._output.db.in_request:
                self._output.db.wait_for_future(self._request)
            elif self._output.answered:
                self._read_rows()  # at once: nothing else runs on this thread
            else:
                return

    def _serve_all(self) -> None:
        """Read the rows as a request; an error ends the interests that wait for them."""
        request = self._request = Future[None]()
        try:
            self._read_rows()
        except Exception as error:
            failure = error if isinstance(error, KpgError) else KpgError(f"the answer failed ({type(error).__name__})")
            self._refuse(failure)
        finally:
            self._request = None
            request.set_result(None)

    def _read_rows(self) -> None:
        last = None
        while self._waiting:
            read = self._begin_read()
            if read is None:
                self._output.wait()
                continue
            try:
                rows = self._output.lanes(read.epoch) if read.epoch >= 0 else None
                if self._read is not read:  # another read has served all
                    return
                later = changes_after(read.later, read.epoch)
            except TimeTooEarly:
                if last == read.epoch:
                    raise
                last = read.epoch
            else:
                self._push(rows, later)

    def _begin_read(self) -> RowRead | None:
        """Return a read as of the last complete epoch; None if changes cannot be told from those before it yet."""
        output = self._output
        output.notify()  # changes up to now are for the interests that were served before
        epoch = output.complete_through
        read = self._read = RowRead(-1 if epoch is None else epoch)
        return read if output.begin_changes(read.epoch) else None

    def _push(self, rows: Updates | None, later: Updates | None) -> None:
        waiting, self._waiting, self._read = self._waiting, [], None
        for interest in waiting:
            for updates in (rows, later):
                if updates is not None:
                    interest.push_block(updates)
        self._begin(waiting)

    def _refuse(self, error: KpgError) -> None:
        """Tell interests that they get no rows, unless the answer has ended and says so itself."""
        if self._output.ended:
            return
        waiting, self._waiting, self._read = self._waiting, [], None
        for interest in waiting:
            interest.refuse(error)
        self._begin(waiting)


def changes_after(parts: list[Updates], epoch: int) -> Updates | None:
    """Return changes at later epochs as one block; None if there are none."""
    later = split_at([part for part in parts if len(part)], epoch)[1]
    return concatenate(later) if later else None

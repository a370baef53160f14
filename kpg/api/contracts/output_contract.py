"""The contract of an output: an installed answer, read as of a time, or followed by its changes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kpg.algebra.frontier import Frontier
from kpg.api.answer_preview import PREVIEW_ROWS, AnswerPreview
from kpg.api.contracts.releasable import Releasable
from kpg.api.explanation import Explanation
from kpg.api.ordered_read import FRAME_SECONDS, OrderedRead, live_table, polars_frame
from kpg.api.uncopyable import Uncopyable
from kpg.columns.order_key import OrderBy, OrderKey
from kpg.columns.rows import rows_of
from kpg.columns.schema import Schema
from kpg.columns.updates import Updates
from kpg.errors import KpgError, TimeNotReached

if TYPE_CHECKING:
    from kpg.api.capture import Capture
    from kpg.api.changes import Change, Changes
    from kpg.api.contracts.database_contract import Database
    from kpg.api.usage_groups import UsageGroup


class Output(Uncopyable, Releasable):
    """An installed answer, kept up to date. One that was installed without a name is released with its last handle."""

    kind_in_errors = "an output"
    db: Database
    name: str
    schema: Schema
    reads: frozenset[str]  # the names of the inputs that the answer depends on
    is_named: bool = True
    is_remote: bool = False  # whether other processes compute it, with symbols of their own for texts
    order: tuple[OrderKey, ...] = ()  # of reads that do not sort themselves; none for most answers

    @abstractmethod
    def take_changes(self) -> Changes:
        """Return all updates since the last call, together."""

    @property
    @abstractmethod
    def unread_rows(self) -> int:
        """The number of changes that wait in this process to be taken."""

    @property
    @abstractmethod
    def summed_through(self) -> int:
        """The epoch to which changes of earlier ones were moved, because too many were unread; -1 if none were."""

    @abstractmethod
    def begin_reading(self, until: int | None) -> None:
        """Keep changes for `take_changes` in this process, from now on; none at `until` or later, if it is given."""

    def changes(self) -> Iterator[Change]:
        """Return each (row, time, diff) since changes were last read."""
        return iter(self.take_changes())

    @abstractmethod
    def on_change(self, function: Callable[[Changes], Any]) -> Callable[[], None]:
        """Call `function(changes)` after each advance that changed the answer; return a function that ends this.

        The first call includes the changes before, as far as they were not read: of a new output, all its rows.
        """

    @abstractmethod
    def notify(self) -> None:
        """Pass the unread changes to the listeners, if there are both."""

    @abstractmethod
    def skip_changes(self) -> None:
        """Drop the unread changes: the caller reads the rows instead."""

    def hold_changes(self) -> None:
        """Keep changes from listeners until `begin_changes`: the caller reads the rows first. Call it before any work.

        Changes that the rows include are neither passed on nor, on several workers, sent.
        """

    def begin_changes(self, after: int) -> bool:
        """Drop held changes through a complete epoch, and pass later ones to listeners, as always.

        Return False, and do nothing, if later changes were summed with earlier ones: try again when they are complete.
        """
        return True

    @abstractmethod
    def capture(self, path: str | PathLike[str]) -> Capture:
        """Write this answer to a file, starting with its present rows: see kpg.replay()."""

    @abstractmethod
    def read_rows(self, as_of: Any, counts: bool) -> pa.Table:
        """Return the rows as of a time, or each once with its count, without the order of the answer."""

    @abstractmethod
    def read_first_rows(self, size: int, as_of: Any) -> tuple[pa.Table, int]:
        """Return the first `size` rows of `read_rows`, and the number of all; the others are not read."""

    def first_rows(self, size: int, as_of: Any = None) -> tuple[pa.Table, int]:
        """Return the first `size` rows of a snapshot, and the number of all.

        Where a snapshot raises an error because a later row has a negative count, this returns the first rows.
        """
        if not self.order:
            return self.read_first_rows(size, as_of)
        table = self.snapshot(as_of)
        return table.slice(0, size), table.num_rows

    def snapshot(self, as_of: Any = None, *, counts: bool = False) -> pa.Table:
        """Return the rows as of a time, by default the last complete one; with counts=True each once with its count."""
        if counts or not self.order:
            return self.read_rows(as_of, counts)
        return OrderedRead(self, self.order).snapshot(as_of)

    def rows(self, as_of: Any = None) -> list[tuple[Any, ...]]:
        """Return the rows as of a time as tuples, in a fixed order."""
        return rows_of(self.snapshot(as_of), self.schema)

    def to_pandas(self, as_of: Any = None) -> Any:
        """Return the rows as of a time as a pandas DataFrame."""
        return self.snapshot(as_of).to_pandas()

    def to_polars(self, as_of: Any = None) -> Any:
        """Return the rows as of a time as a polars DataFrame."""
        return polars_frame(self.snapshot(as_of))

    def sort(self, *by: OrderBy) -> OrderedRead:
        """Read the rows in an order: sort("-age", "name").rows()."""
        return OrderedRead(self).sort(*by)

    def limit(self, size: int, offset: int = 0) -> OrderedRead:
        """Read at most `size` rows after the first `offset`, in the order of all columns or of a later `sort`."""
        return OrderedRead(self, self.order).limit(size, offset)

    def head(self, size: int = 5) -> OrderedRead:
        """Read the first rows, in the order of all columns or of a `sort` that follows."""
        return OrderedRead(self, self.order).head(size)

    @abstractmethod
    def preview(self, size: int = PREVIEW_ROWS) -> AnswerPreview:
        """Return the first rows as of the last complete time, each once, and the number of all rows."""

    def live(self, rows: int = PREVIEW_ROWS, *, interval: float = FRAME_SECONDS) -> Any:
        """Return a table of the first rows that a notebook keeps up to date, at most every `interval` seconds.

        `answer.live().plot("total")` is a plot instead.
        """
        return live_table(self, rows, interval)

    @abstractmethod
    def lanes(self, as_of: int | None = None) -> Updates:
        """Return the encoded rows as of a complete epoch, with that time, also while the answer fails.

        By default it is the last one. A request lets others run meanwhile.
        """

    @abstractmethod
    def look_up(self, keys: tuple[str, ...], rows: Any, as_of: Any = None) -> Callable[[], pa.Table] | None:
        """Return a function that reads the rows with some values in the columns `keys`, from an index by them.

        Call it once. Without such an index, return None.
        """

    @abstractmethod
    def frontier(self) -> Frontier:
        """Return the times at which the answer may still change."""

    @property
    def complete_through(self) -> int | None:
        """The last epoch that this answer has completed; None if there is none, or if the db has no epochs."""
        frontier = self.frontier()
        if self.db.config.coordinates != 1:
            return None
        open_epoch = min([self.db.epoch, *[time[0] for time in frontier]])
        return open_epoch - 1 if open_epoch > 0 else None

    @property
    def answered(self) -> bool:
        """Whether the first answer is complete, or the dataflow has ended."""
        return True

    def catch_up(self, asked: int = -1) -> None:
        """Wait for the first answer, for an epoch, and in a request for the last write of the same session."""

    def wait(self, time: Any = None) -> None:
        """Wait until this answer is complete as of a time that the clock has passed, by default the last one."""
        self.db.settle()

    @property
    @abstractmethod
    def ended(self) -> bool:
        """Whether its dataflow has ended: released, or stopped by a failure."""

    @abstractmethod
    def error(self) -> KpgError | None:
        """Return the reason why the answer has no value now; None if it has one, or if only a read can find out."""

    # Queries that run for others; an answer of several workers does nothing here

    def keep_times_apart(self) -> None:
        """Let the first changes keep their times, however many they are."""

    def share_limits(self, tenants: int, asking: int = 0, asked_at: int = -1) -> None:
        """Let the answer use as much as `tenants` queries together, because that many share it.

        For the epoch `asked_at` it may work as much as the `asking` tenants with new arguments together.
        """

    def take_limits(self, other: Output) -> None:
        """Let the limits of another answer hold for this one, which replaces it."""

    def stay_in_groups(self, groups: Sequence[UsageGroup]) -> None:
        """Let what the answer uses count for no other session or tenant any more: others share it."""

    def add_owner(self) -> None:
        """Let the answer be computed in the share of the session or tenant of the present request, too."""

    def on_failure(self, function: Callable[[], None]) -> None:
        """Call a function soon after the answer has failed, before the failed time is sealed."""

    @property
    def circulating(self) -> tuple[int, ...]:
        """The encoded values of the rows that went round beyond a limit of rounds, if it failed for them; or none."""
        return ()

    def failure(self) -> str | None:
        """Return, in short, the reason why the answer has no value now."""
        error = self.error()
        return None if error is None else error.what

    @abstractmethod
    def explain(self) -> Explanation:
        """Return one block of text for each arrangement that this answer keeps or shares, then its operators.

        A notebook shows it as a graph of operators.
        """

    @abstractmethod
    def release(self) -> None:
        """Drop the answer and everything that it holds; may be repeated."""

    def _repr_html_(self) -> str:
        from kpg.api.notebook_html import html_output

        return html_output(self)

    def __repr__(self) -> str:
        return f"Output({self.name!r}, {self.schema!r})"

    def __del__(self) -> None:
        if not self.is_named and not self.ended:
            self.db.outputs.abandon(self)


def clock_behind(output: Output, epoch: int) -> TimeNotReached:
    """Return the error for an epoch that no answer can complete yet."""
    return TimeNotReached(
        f"{output.name} cannot complete {epoch}",
        detail=f"The clock is at {output.db.epoch}.",
        hint="Call db.advance() first.",
    )

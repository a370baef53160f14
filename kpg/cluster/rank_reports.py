"""What a rank tells the coordinator: changes of followed outputs, failures, and how far answers are complete.

    follow(name)    collect the changes of an output from now on
    take(...)       everything that is new, as a report and its blocks
    take_if_new()   the same, if there is something new; None otherwise

A report states the whole progress of the rank, so the last one counts. While answers lag, making reports takes at most
about a tenth of the rank's time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING

from kpg.api.answer_lag import AnswerLag
from kpg.api.changes import Changes
from kpg.cluster.rank_commands.time_commands import RankReport
from kpg.cluster.rank_completion import RankCompletion, RankProgress
from kpg.cluster.request_frames import Answer, RowBlock, symbolic_lanes
from kpg.columns.selection import keep
from kpg.columns.updates import Updates, concatenate, no_updates, spread
from kpg.errors import ResourceError
from kpg.protocol.error_messages import failure_of
from kpg.protocol.parts import FailureSpec

if TYPE_CHECKING:
    from kpg.api.embedded_database import EmbeddedDatabase
    from kpg.api.embedded_output import EmbeddedOutput

REPORT_SHARE = 0.1  # of the time, at most, that a rank with work left spends on reports


class RankReports:
    """The reports of one rank in one generation."""

    def __init__(self, db: EmbeddedDatabase, outputs: dict[str, EmbeddedOutput]) -> None:
        assert isinstance(db.completion, RankCompletion)
        self.db = db
        self.completion: RankCompletion = db.completion
        self.last_command = -1  # the number of the last command that was performed
        self._outputs = outputs
        self._followed: dict[str, Callable[[], None]] = {}  # by output: ends following it
        self._skipped: dict[str, int] = {}  # by output: changes through this epoch are known to the coordinator
        self._changes: dict[str, list[Updates]] = {}
        self._failing: set[str] = set()  # the outputs that fail, as the coordinator knows
        self._failed: set[str] = set()  # outputs whose dataflow has ended since the last report
        self._names: dict[int, str] = {}  # of the answers, by the id of their dataflow
        self._active: set[int] = set()  # ids of dataflows whose counts have changed since the last report
        self._sent = RankProgress()
        self._numbers = count()
        self._is_due = True  # whether to send the next report even if it is equal to the last: something was installed
        self._not_before = 0.0

    # Answers

    def add(self, key: str, dataflow_id: int) -> None:
        """Report the progress of an answer under a key."""
        self._names[dataflow_id] = key
        self._is_due = True

    def add_output(self, output: EmbeddedOutput) -> None:
        """Report the progress and the failure of an output."""
        self.add(output_key(output.name), output.dataflow.id)
        output.on_failure(partial(self._failed.add, output.name))

    def replace_output(self, output: EmbeddedOutput) -> None:
        """Report on the new dataflow of an output that was rebuilt."""
        self.forget(output_key(output.name))
        self.add_output(output)

    def forget(self, key: str) -> None:
        """Report no progress of an answer any more."""
        self._names = {number: known for number, known in self._names.items() if known != key}

    def remove_output(self, name: str) -> None:
        """Report nothing more about an output."""
        self.forget(output_key(name))
        for mapping in (self._followed, self._skipped, self._changes):
            mapping.pop(name, None)
        self._failing.discard(name)
        self._failed.discard(name)

    def follow(self, name: str, hold: bool = False) -> None:
        """Collect the changes of an output from now on, and those before that are complete; may be repeated.

        One that has ended has none: its failure is reported. With `hold`, collect changes from `begin` on.
        """
        if self._outputs[name].ended:
            return
        if hold:
            self._outputs[name].hold_changes()
        if name not in self._followed:
            self._followed[name] = self._outputs[name].on_change(partial(self._collect, name))
        self._outputs[name].notify()

    def begin(self, name: str, after: int) -> bool:
        """Collect the changes of an output after an epoch, if they were held. Return False if this is too early."""
        output = self._outputs[name]
        if not output.ended:
            if not output.begin_changes(after):
                return False
            output.notify()
        return True

    def skip(self, name: str, through: int | None) -> None:
        """Follow an output and drop its changes: all that are complete, or those through an epoch, now and later."""
        self.follow(name)
        if through is None:
            self._changes.pop(name, None)
        else:
            self._outputs[name].keep_times_apart()
            self._skipped[name] = through
            parts = self._changes.pop(name, [])
            self._changes[name] = [later for part in parts if len(later := self._later(name, part))]

    def _collect(self, name: str, changes: Changes) -> None:
        later = self._later(name, changes.updates)
        if len(later):
            self._changes.setdefault(name, []).append(later)

    def _later(self, name: str, updates: Updates) -> Updates:
        """Return the updates that the coordinator does not know."""
        through = self._skipped.get(name)
        if through is None or not len(updates) or updates.times[0].min() > through:
            return updates
        return keep(updates, spread(updates.times, len(updates))[0] > through)

    def changes_block(self, name: str) -> RowBlock:
        """Take the collected changes of an output, as a block."""
        schema, parts = self._outputs[name].schema, self._changes.pop(name, [])
        changes = concatenate(parts) if parts else no_updates(schema.width, self.db.config.coordinates)
        return RowBlock(changes, symbolic_lanes(schema))

    def failure(self, name: str) -> FailureSpec | None:
        """Return the reason why an output has no value now, if there is one; the coordinator gets it."""
        output = self._outputs[name]
        complete = self.completion.complete_through(output.dataflow) if self.db.config.coordinates == 1 else None
        error = output.error_at(complete)  # of the newest epoch, which the coordinator seals later
        (self._failing.discard if error is None else self._failing.add)(name)
        return None if error is None else failure_of(error)

    # Reports

    def take_if_new(self, idle: bool) -> Answer[RankReport] | None:
        """Return what is new for the coordinator; None if nothing is, or the rank is busy and no report is due yet."""
        began = monotonic()
        if began < self._not_before and not idle:
            return None
        progress = self.completion.progress(self._active)
        behind = self.completion.lag_limit.exceeded(self._outputs.values()) if progress.lagging else []
        is_new = self._is_due or progress != self._sent or any(self._changes.values()) or bool(self._failed or behind)
        report = None
        if is_new:
            report = self._take(progress, self._active_outputs(), behind={output.name: lag for output, lag in behind})
        spent = monotonic() - began
        self._not_before = began + spent / REPORT_SHARE if progress.lagging else 0.0
        return report

    def take(self, log_bytes: int = 0, trouble: FailureSpec | None = None) -> Answer[RankReport]:
        """Return what is new after a command: any output may have failed, and answers may have been completed."""
        self.completion.pass_on()  # a report that says that an answer is complete has its changes
        progress = self.completion.progress(self._active)
        return self._take(progress, list(self._followed), log_bytes, trouble, spare_bytes=self.db.memory.spare_bytes)

    def _active_outputs(self) -> list[str]:
        """Return the followed outputs that may have begun to fail, or have recovered, since the last report."""
        keys = [self._names.get(number, "") for number in self._active]
        names = {key.removeprefix(OUTPUT) for key in keys if key.startswith(OUTPUT)} | self._failed | self._failing
        return sorted(names & self._followed.keys() | (self._failed & self._outputs.keys()))

    def _take(
        self,
        progress: RankProgress,
        may_fail: list[str],
        log_bytes: int = 0,
        trouble: FailureSpec | None = None,
        behind: dict[str, AnswerLag] | None = None,
        spare_bytes: int | None = None,
    ) -> Answer[RankReport]:
        changed: list[str] = []
        failures: list[FailureSpec | None] = []
        blocks: list[RowBlock] = []
        for name in dict.fromkeys([*self._changes, *may_fail]):
            was_failing = name in self._failing
            failure, parts = self.failure(name), self._changes.get(name)
            if parts or was_failing or failure is not None:
                changed.append(name)
                failures.append(failure)
                blocks.append(self.changes_block(name))
        self._active.intersection_update(number for number, _ in progress.lagging)  # these may fail when they complete
        self._failed.clear()
        self._sent, self._is_due = progress, False
        lagging = {key: epoch for number, epoch in progress.lagging if (key := self._names.get(number)) is not None}
        report = RankReport(
            tuple(changed),
            tuple(failures),
            log_bytes,
            trouble,
            next(self._numbers),
            self.last_command,
            progress.reached,
            progress.complete,
            lagging,
            {name: values for name in changed if (values := self._outputs[name].circulating)},
            spare_bytes,
            {name: (lag.epochs, lag.pinned_bytes) for name, lag in (behind or {}).items()},
        )
        return Answer(report, blocks)


OUTPUT, INDEX = "output ", "index "  # prefixes of the keys of answers in reports


def output_key(name: str) -> str:
    """Return the key of an output in reports."""
    return OUTPUT + name


def index_key(number: int) -> str:
    """Return the key of an arrangement in reports."""
    return f"{INDEX}{number}"


def exceeded_limit(db: EmbeddedDatabase) -> FailureSpec | None:
    """Return the memory limit that the db exceeds, if it does."""
    try:
        db.memory.check()
    except ResourceError as error:
        return failure_of(error)
    return None

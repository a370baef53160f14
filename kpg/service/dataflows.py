"""The three kinds of dataflow that serve interests.

    MaintainedAnswer   one dataflow, read by all interests in a rule and by the queries built on it
    TenantDataflow     one dataflow for many arguments: a token in each row names the tenant it belongs to
    AnswerFilter       one dataflow for one interest: the rows of a maintained answer that have its argument

With sharing="nothing", an interest has a maintained answer or a tenant dataflow of its own.

    dataflow.join(interest)     push the current rows to the interest, then each change
    dataflow.leave(interest)    stop; the last one to leave drops the dataflow and the indexes that only it read

docs/service.md draws how they differ. All three push changes as references to shared arrays. Per epoch an answer costs
its changes and about a microsecond per interest. A tenant dataflow costs its changes, sorted by token once, and a few
microseconds per tenant that has some. A filter costs all changes of its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from kpg.columns.exact_diffs import MAX_MASS, mass, sum_of
from kpg.columns.selection import take
from kpg.columns.table_rows import encode
from kpg.columns.updates import Updates, spread
from kpg.errors import DataError, KpgError
from kpg.query.ir.program import Relation
from kpg.service.initial_rows import InitialRows
from kpg.service.subscription import Interest
from kpg.service.tenant_arguments import TenantArguments
from kpg.service.tenant_parts import TenantPart, TokenFilter, can_be_alone, only

if TYPE_CHECKING:
    from kpg.api.changes import Changes
    from kpg.api.contracts import Input, Output
    from kpg.api.usage_groups import UsageGroup

MAX_PARTS: Final = 64  # dataflows of one tenant dataflow; tenants of a part beyond these share an error of a row

Release = Callable[[], None]
BuildPart: TypeAlias = Callable[[TokenFilter], TenantPart]


class MaintainedAnswer:
    """A maintained query: its rows are indexed, and any number of interests and queries read them.

    An interest that joins late gets the rows as of the last closed time from the answer's own index.
    """

    def __init__(
        self, relation: Relation, output: Output, held: Sequence[Release], reads: Sequence[MaintainedAnswer] = ()
    ) -> None:
        self.relation = relation
        self.output = output
        self.users = 0  # interests, and queries built on this answer
        self.interests: list[Interest] = []
        self._held = list(held)
        self._reads = reads  # shared answers
        self._rows = InitialRows(output, self.interests.extend)
        if output.db.answers_lag:
            output.hold_changes()  # earlier rows are read from the index when an interest joins
        else:
            output.skip_changes()
        output.on_change(self._push)

    # Interests

    def join(self, interest: Interest) -> None:
        """Push the rows to an interest when the answer is complete, and each change from then on."""
        self.use()
        rows = self._rows
        interest.follow(self.output, lambda: rows.serve(interest), lambda: rows.wait_for(interest))
        interest.answer_error = self.error
        rows.add(interest)
        rows.serve(interest)

    def leave(self, interest: Interest) -> None:
        """Push nothing more to an interest."""
        (self._rows if interest in self._rows else self.interests).remove(interest)
        self.release()

    def _push(self, changes: Changes) -> None:
        updates = changes.updates
        growth = sum_of(spread(updates.diffs, len(updates)))
        for interest in self.interests:
            interest.push(updates, 0, len(updates), growth)
        self._rows.note(updates)

    def error(self) -> KpgError | None:
        """Return why the answer has no value now, if so."""
        return self.output.error()

    def stay_in_groups(self, groups: Sequence[UsageGroup]) -> None:
        """Count for no other session or tenant from now on; so do the answers that it reads."""
        self.output.stay_in_groups(groups)
        for answer in self._reads:
            answer.stay_in_groups(groups)

    # Lifetime

    @property
    def living(self) -> bool:
        """Whether its dataflow is installed; a failed dataflow is not."""
        return not self.output.ended

    def use(self) -> None:
        """Add a user for the present request. The answer is computed in the share of its session, too."""
        self.users += 1
        self.add_owner()

    def add_owner(self, interest: Interest | None = None) -> None:
        """Let this dataflow, and those that it reads, run in the share of the session of the present request, too."""
        self.output.add_owner()
        for answer in self._reads:
            answer.add_owner()

    def release(self) -> None:
        """Remove one user. The last one drops the dataflow."""
        self.users -= 1
        if self.users <= 0:
            self.output.release()
            for release in self._held:
                release()
            self._held.clear()


class AnswerFilter:
    """A filter for one interest, on a maintained answer. It keeps no index of its rows."""

    def __init__(self, relation: Relation, output: Output, answer: MaintainedAnswer, reason: str) -> None:
        self.relation = relation
        self.output = output
        self.reason = reason
        self._answer = answer

    def join(self, interest: Interest) -> None:
        """Push the current rows to the interest, and each change from now on."""
        interest.follow(self.output, lambda: self.output.answered)
        interest.answer_error = self.output.error
        if not self.output.db.answers_lag:
            self.output.db.settle()
        self.output.on_change(lambda changes: interest.push_block(changes.updates))
        self.output.notify()

    def add_owner(self, interest: Interest) -> None:
        """Let the filter and the answer run in the share of the session of the present request, too."""
        self.output.add_owner()
        self._answer.add_owner()

    def leave(self, interest: Interest) -> None:
        """Drop the dataflow."""
        self.output.release()
        self._answer.release()


class TenantDataflow:
    """One dataflow for the arguments of many tenants.

        parameters (token, x)       one row per argument of each tenant
        answer (token, x, y)        the parameters joined with the rows computed for the arguments of all tenants

    A tenant that joins, leaves or changes its arguments is an update of `parameters`, never a new dataflow. The changes
    of an epoch are sorted by token and cut into one range per tenant. Ranges of tenants that have left are dropped.

    If the dataflow exceeds a limit, it is divided before the failed time is sealed. The suspects get a dataflow of
    their own each: the tenants with an argument among the values that went round in a loop beyond its limit, or else
    those whose arguments are new. Without suspects, ranges of tenants do. Parts that exceed the limit again are divided
    further, until each offender is alone. So suspects only save attempts; they need not be right. The others get the
    changes of the failed time from the new dataflow, and no others. New tenants never join a part that has failed.
    If an expression fails on a row, the tenants are divided in the same way, when one of them reads: the answers of
    those without such a row keep their value.
    """

    def __init__(self, build: BuildPart, part: TenantPart, parameters: Input, reason: str) -> None:
        self.reason = reason
        self.parameters = parameters
        self._arguments = TenantArguments(parameters, self._refuse)
        self._build = build
        self._parts = [part]  # the first one serves new tenants
        self._tenants: dict[int, Interest] = {}  # by token, which is the id of the interest
        self._joined: dict[int, int] = {}  # by token, the epoch of its first arguments
        self._changed: dict[int, int] = {}  # by token, the epoch of its newest arguments
        self._asking: tuple[int, set[int]] = -1, set()  # the newest of these epochs, and the tokens with that one
        self._start(part)

    @property
    def output(self) -> Output:
        """The output of the part that serves new tenants."""
        return self._parts[0].output

    @property
    def users(self) -> int:
        """The number of tenants."""
        return len(self._tenants)

    @property
    def living(self) -> bool:
        """Whether the dataflow for new tenants is installed; a failed dataflow is not."""
        return not self.output.ended

    # Tenants

    def join(self, interest: Interest, arguments: Iterable[tuple[Any, ...]]) -> None:
        """Add a tenant; its first rows arrive when the open time is closed."""
        self._tenants[interest.id] = interest
        self.add_owner(interest)
        self._arguments.join(interest.id)
        self._joined[interest.id] = self.parameters.db.epoch
        interest.follow(self.output, lambda: self._has_joined(interest))
        interest.answer_error = lambda: self._error_of(interest.id)
        interest.before_take = self._arguments.flush
        self._count_tenants()
        self.add(interest, arguments)

    def add_owner(self, interest: Interest) -> None:
        """Let the part of a tenant run in the share of the session of the present request, too."""
        self.part_of(interest.id).output.add_owner()

    def part_of(self, token: int) -> TenantPart:
        """Return the part that serves a tenant."""
        return next(part for part in self._parts if part.tokens.matches(token))

    def _has_joined(self, interest: Interest) -> bool:
        """Close the time of a tenant's first arguments. Return whether the answer to them is complete."""
        self._arguments.flush()
        output = self.part_of(interest.id).output
        if output.ended:  # it failed just now, and is divided or reported before the worker goes on
            return False
        complete = output.complete_through
        return complete is not None and complete >= min(self._joined[interest.id], self.parameters.db.epoch - 1)

    def add(self, interest: Interest, arguments: Iterable[tuple[Any, ...]]) -> None:
        """Add arguments of a tenant; those it has already are ignored."""
        if self._arguments.add(interest.id, arguments):
            self._changed[interest.id] = interest.asked = self.parameters.db.epoch
            if self._asking[0] != interest.asked:
                self._asking = interest.asked, set()
            self._asking[1].add(interest.id)
            self._share_limits(self.part_of(interest.id))

    def remove(self, interest: Interest, arguments: Iterable[tuple[Any, ...]]) -> None:
        """Remove arguments of a tenant; raise if it does not have one of them."""
        if self._arguments.remove(interest.id, arguments, interest.name):
            interest.asked = self.parameters.db.epoch

    def leave(self, interest: Interest) -> None:
        """Remove a tenant. The last one drops the dataflow."""
        del self._tenants[interest.id]
        del self._joined[interest.id]
        self._changed.pop(interest.id, None)
        if not self._tenants:
            self._arguments.forget(interest.id)
            self._release()
            return
        for part in [part for part in self._parts[1:] if not self._tokens_of(part)]:
            self._parts.remove(part)
            part.release()
        self._count_tenants()
        self._arguments.leave(interest.id)

    def discard(self) -> None:
        """Drop the dataflow, which no tenant has joined."""
        self._release()

    def _release(self) -> None:
        for part in self._parts:
            part.release()
        self._arguments.drop()

    # Failures

    def _refuse(self, tokens: set[int], error: KpgError) -> None:
        """Give an error to tenants whose arguments could not be added or removed."""
        for token in tokens:
            self._tenants[token].refuse(error)

    def _tokens_of(self, part: TenantPart) -> list[int]:
        return [token for token in self._tenants if part.tokens.matches(token)]

    def _count_tenants(self) -> None:
        """Let each part use the sum of its tenants' limits, for new arguments that of those that ask."""
        for part in self._parts:
            part.tenants = len(self._tokens_of(part))
            self._share_limits(part)

    def _share_limits(self, part: TenantPart) -> None:
        epoch, tokens = self._asking
        part.output.share_limits(part.tenants, sum(map(part.tokens.matches, tokens)), epoch)

    def _start(self, part: TenantPart) -> None:
        part.listen(self._route)
        part.output.on_failure(lambda: self._divide(part))

    def _divide(self, failed: TenantPart) -> None:
        """Divide the tenants of a failed part into several; called before the failed time is sealed."""
        tokens = self._tokens_of(failed)
        sealed = self.parameters.db.sealed
        last = -1 if sealed is None else sealed.elements[0][0]
        start = max(failed.last, last) + 1
        if failed not in self._parts or len(tokens) < 2:
            for token in tokens:
                self._tenants[token].exceeded_limit = True
            if failed is self._parts[0] and tokens:
                self._open_part(failed, tokens[0], start)
            return
        suspects = [] if failed.is_cleared else self._suspects(failed, tokens, last)
        now = failed.output.is_remote and not self.parameters.db.answers_lag  # an advance waits for all changes
        self._replace(failed, failed.tokens.split(tokens, suspects), start, now, can_be_alone(suspects, tokens))

    def _suspects(self, failed: TenantPart, tokens: list[int], last: int) -> list[int]:
        """Return the tenants to blame for a failure: by what circulated in the dataflow, by new arguments, or both."""
        new = {token for token in tokens if self._changed.get(token, -1) > last}
        found = self._tokens_with(tokens, failed.output)
        return sorted(found & new or found or new)

    def _tokens_with(self, tokens: list[int], output: Output) -> set[int]:
        """Return the tenants with an argument whose values all circulated in a dataflow beyond its limit of rounds."""
        schema = self.parameters.schema
        symbolic = any(kind.is_symbolic for kind in schema.lane_types())
        if not output.circulating or (symbolic and output.is_remote):
            return set()
        rows = [(token, *row) for token in tokens for row in self._arguments.of(token)]
        lanes = encode(schema, rows, self.parameters.db.symbols)
        matches = np.isin(lanes[1:], np.array(output.circulating, np.int64)).all(axis=0)
        return set(lanes[0, matches].tolist())

    def _open_part(self, failed: TenantPart, token: int, start: int) -> None:
        """Let a new part serve new tenants: the one that did has failed, with a single tenant."""
        try:
            part = self._build_whole(failed.tokens.without([token]))
        except KpgError:  # new tenants get a dataflow of their own each
            return
        failed.tokens = only(token)
        part.begin_at(max(failed.start, start))
        part.output.take_limits(failed.output)
        self._parts.insert(0, part)
        self._start(part)
        self._count_tenants()

    def _build_whole(self, tokens: TokenFilter) -> TenantPart:
        """Build a part while nothing else runs: its time of beginning must not pass, nor its tenants change."""
        with self.parameters.db.uninterrupted():
            return self._build(tokens)

    def _error_of(self, token: int) -> Exception | None:
        """Return why a tenant's answer has no value. A part in which a row fails is divided first."""
        part = self.part_of(token)
        error = part.output.error()
        while isinstance(error, DataError) and self._divide_errors(part):
            part = self.part_of(token)
            error = part.output.error()
        return error

    def _divide_errors(self, failing: TenantPart) -> bool:
        """Divide the tenants of a part in which a row fails, so that the others get their answer; return whether."""
        tokens, db = self._tokens_of(failing), self.parameters.db
        complete = failing.output.complete_through
        if len(tokens) < 2 or len(self._parts) >= MAX_PARTS or complete is None:
            return False
        failing.output.notify()  # its rows are correct through this time, except those that are missing
        newest = max(self._changed.get(token, -1) for token in tokens)
        suspects = [token for token in tokens if self._changed.get(token, -1) == newest]
        filters = failing.tokens.split(tokens, [] if failing.is_division else suspects)
        return self._replace(failing, filters, max(failing.last, complete) + 1, complete=not db.answers_lag)

    def _replace(
        self, failed: TenantPart, filters: list[TokenFilter], start: int, complete: bool = False, cleared: bool = False
    ) -> bool:
        """Build parts whose changes from a time on follow those of a failed part; return False if that fails.

        If they are to be `complete`, their answers are computed now. If it is `cleared`, the first has no suspects.
        """
        parts: list[TenantPart] = []
        try:
            for chosen in filters:
                parts.append(self._build_whole(chosen))
                parts[-1].begin_at(max(failed.start, start))
                parts[-1].is_division = True
                parts[-1].output.take_limits(failed.output)
            if complete:
                self.parameters.db.settle()  # before they are followed: workers then report rows that fail
        except KpgError:  # for example over the memory limit: the tenants keep the error of the failed part
            for part in parts:
                part.release()
            return False
        parts[0].is_cleared = cleared
        at = self._parts.index(failed)
        self._parts[at : at + 1] = parts
        for part in parts:
            if not part.output.ended:
                self._start(part)
            for token in self._tokens_of(part):
                interest = self._tenants[token]
                interest.follow(part.output, partial(self._has_joined, interest))
        self._count_tenants()
        failed.release()
        return True

    # Results

    def _route(self, updates: Updates) -> None:
        """Cut changes into one range per token, and push each to its tenant."""
        tokens = updates.data[0]
        if (tokens[1:] < tokens[:-1]).any():
            updates = take(updates, np.argsort(tokens, kind="stable"))
            tokens = updates.data[0]
        starts = np.flatnonzero(np.concatenate([[True], tokens[1:] != tokens[:-1]]))
        diffs = spread(updates.diffs, len(updates))[0]
        diffs = diffs if mass(updates) <= MAX_MASS else diffs.astype(object)
        growths = np.add.reduceat(diffs, starts).tolist()
        begins = starts.tolist()
        tenants = self._tenants
        for token, start, end, growth in zip(
            tokens[starts].tolist(), begins, [*begins[1:], len(tokens)], growths, strict=True
        ):
            tenant = tenants.get(token)
            if tenant is not None:
                tenant.push(updates, start, end, growth)

"""The interests of a service: which client follows which answer, and which dataflow serves it.

    registry.add(options)        find or build the dataflow, and join it
    registry.remove(interest)    leave it; the last interest drops it

Cost of `add`: a lookup and one read of the current rows if the dataflow exists; otherwise it builds the dataflow.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import dataclass
from os import PathLike
from threading import Timer
from time import monotonic
from typing import Any, TypeAlias

from kpg.errors import KpgError, ProgramError
from kpg.observe.drain import Drain
from kpg.observe.event_log import unlogged
from kpg.observe.granularity import ClockGranularity
from kpg.observe.sinks import Sink, open_sink
from kpg.service.dataflows import AnswerFilter, MaintainedAnswer, TenantDataflow
from kpg.service.sharing import ArgumentRow, Arguments, Sharing, TenantBuilder, check_sharing, client_schema
from kpg.service.subscription import GranularInterest, Interest, SinkInterest

ServingDataflow: TypeAlias = MaintainedAnswer | TenantDataflow | AnswerFilter


@dataclass(frozen=True, slots=True)
class InterestOptions:
    """The arguments of `Service.interest`."""

    name: str
    arguments: Arguments | None = None
    owner: Any = None
    sharing: str = "auto"
    joins: str = "auto"
    granularity: float | None = None
    log: bool = True
    sink: Sink | Mapping[str, Any] | None = None


SECONDS_AFTER_EXCESS = 0.2  # that an owner waits before it may ask again for a rule whose limits it has exceeded


class InterestRegistry:
    """All interests, with their dataflows and owners."""

    def __init__(self, tenants: TenantBuilder, clock: Callable[[], float], sinks: str | PathLike[str] | None) -> None:
        self.tenants = tenants
        self.answers = tenants.answers
        self.interests: dict[int, Interest] = {}
        self._clock = clock
        self._sink_directory = sinks
        self._dataflows: dict[int, ServingDataflow] = {}
        self._drains: dict[int, Drain] = {}
        self._by_owner: defaultdict[Any, set[int]] = defaultdict(set)
        self._exceeded: defaultdict[Any, dict[str, float]] = defaultdict(dict)  # by owner: rules, and when it failed
        self._numbers = itertools.count(1)

    def add(self, options: InterestOptions) -> Interest:
        """Add an interest."""
        self.answers.limits.check_queries(options.owner, len(self._by_owner.get(options.owner, ())))
        sharing = check_sharing(options.sharing, options.arguments is not None)
        if options.joins != "auto":  # a join hint applies to a private dataflow only
            sharing = "nothing"
        sink = options.sink if not isinstance(options.sink, Mapping) else open_sink(options.sink, self._sink_directory)
        interest = self._new_interest(options)
        interest.sharing = sharing
        with nullcontext() if options.log else unlogged(self.answers.db):
            dataflow = self._join_dataflow(interest, sharing, options)
        self.interests[interest.id] = interest
        self._dataflows[interest.id] = dataflow
        self._by_owner[options.owner].add(interest.id)
        if sink is not None:
            followed = SinkInterest(interest, dataflow.output)
            followed.drain = Drain(self.answers.db, followed.take, followed.frontier, sink)
            self._drains[interest.id] = followed.drain
        return interest

    def new_number(self) -> int:
        """Return the number of a new query. One that is being built keeps its number while others begin."""
        return next(self._numbers)

    def remove(self, interest: Interest) -> None:
        """End an interest; does nothing if it has ended already."""
        if self.interests.pop(interest.id, None) is None:
            return
        self._leave_owner(interest)
        self._leave(interest)
        interest.end()

    def refuse(self, interest: Interest, error: KpgError) -> None:
        """Leave the dataflow of an interest; its owner gets an error from now on, and ends it."""
        self._leave(interest)
        interest.leave_answer(error)

    def wait_for_turn(self, name: str, owner: Any) -> None:
        """Wait if an owner has exceeded a limit of a rule just now; others are served meanwhile."""
        exceeded = self._exceeded.get(owner, {}).get(name)
        seconds = 0.0 if exceeded is None else exceeded + SECONDS_AFTER_EXCESS - monotonic()
        if seconds > 0:
            over: Future[None] = Future()
            timer = Timer(seconds, over.set_result, (None,))
            timer.daemon = True
            timer.start()
            self.answers.db.wait_for_future(over)

    def forget_owner(self, owner: Any) -> None:
        """Forget an owner that has no interests any more."""
        self._exceeded.pop(owner, None)

    def _leave(self, interest: Interest) -> None:
        if interest.exceeded_limit:  # to divide a shared dataflow again and again would slow down the others
            self._exceeded[interest.owner][interest.name] = monotonic()
        drain = self._drains.pop(interest.id, None)
        if drain is not None:
            if self.answers.db.answers_lag:
                drain.advance()  # with the writes of this session that the answer has not completed yet
            drain.close()
        dataflow = self._dataflows.pop(interest.id, None)
        if dataflow is not None:
            dataflow.leave(interest)
            self.answers.forget_unused()
            self.tenants.forget_unused()

    def change_owner(self, interest: Interest, owner: Any) -> None:
        """Make an interest that of another owner; does nothing if it has ended."""
        if interest.id in self.interests:
            self._leave_owner(interest)
            self._by_owner[owner].add(interest.id)
            interest.owner = owner

    def add_owner_of(self, interest: Interest) -> None:
        """Let the dataflow of an interest run in the share of the session of the present request, too."""
        dataflow = self._dataflows.get(interest.id)
        if dataflow is not None:
            dataflow.add_owner(interest)

    def _leave_owner(self, interest: Interest) -> None:
        self._by_owner[interest.owner].discard(interest.id)
        if not self._by_owner[interest.owner]:
            del self._by_owner[interest.owner]

    def of_owner(self, owner: Any) -> list[Interest]:
        """Return the interests of an owner."""
        return [self.interests[number] for number in sorted(self._by_owner.get(owner, ()))]

    def arguments(self, interest: Interest, arguments: Arguments) -> tuple[TenantDataflow, list[ArgumentRow]]:
        """Return the dataflow on which an interest's arguments can change, and the given arguments as rows."""
        dataflow = self._dataflows.get(interest.id)
        if not isinstance(dataflow, TenantDataflow):
            raise ProgramError(
                f"the arguments of this interest in {interest.name} cannot be changed",
                hint='Only interests with arguments and sharing="tenants" can change them.',
            )
        columns, rows = self.tenants.rows(interest.name, arguments)
        bound = dataflow.parameters.schema.names[1:]
        if columns != bound:
            raise ProgramError(
                f"this interest in {interest.name} has other arguments", detail=f"It binds {', '.join(bound)}."
            )
        return dataflow, rows

    # Dataflows

    def _new_interest(self, options: InterestOptions) -> Interest:
        answers = self.answers
        relation = answers.relation(options.name)
        schema = client_schema(relation)
        fields = (answers.db, self.new_number(), options.name, relation.columns, schema, options.owner, answers.limits)
        if options.granularity is None:
            return Interest(*fields)
        return GranularInterest(ClockGranularity(options.granularity, self._clock), *fields)

    def _join_dataflow(self, interest: Interest, sharing: Sharing, options: InterestOptions) -> ServingDataflow:
        """Find or build the dataflow for an interest, and join it."""
        if options.arguments is not None:
            return self._join_with_arguments(interest, sharing, options.arguments, options.joins)
        if sharing == "tenants":
            return self._join_tenants(interest, *self.tenants.shared_by_shape(interest.name))
        if sharing == "nothing":
            label = f"answer {interest.name} #{interest.id}"
            answer = self.answers.build(interest.name, False, label, options.joins)
        else:
            answer = self.answers.answer(interest.name, reuse=sharing == "answers")
        try:
            answer.join(interest)
        except BaseException:
            answer.leave(interest)
            self.answers.forget_unused()
            raise
        return answer

    def _join_with_arguments(
        self, interest: Interest, sharing: Sharing, arguments: Arguments, joins: str
    ) -> ServingDataflow:
        columns, rows = self.tenants.rows(interest.name, arguments)
        if sharing == "answers":
            if len(rows) > 1:
                raise ProgramError("a filter on a shared answer takes one argument", hint='Use sharing="tenants".')
            answer_filter = self.answers.build_filter(interest.name, dict(zip(columns, rows[0], strict=True)))
            try:
                answer_filter.join(interest)
            except BaseException:
                answer_filter.leave(interest)
                raise
            return answer_filter
        if sharing == "nothing" or interest.name in self._exceeded.get(interest.owner, ()):
            return self._join_tenants(interest, self.tenants.build(interest.name, columns, joins), *rows)
        return self._join_tenants(interest, self.tenants.shared(interest.name, columns), *rows)

    def _join_tenants(self, interest: Interest, dataflow: TenantDataflow, *rows: ArgumentRow) -> TenantDataflow:
        try:
            dataflow.join(interest, rows)
        except BaseException:
            dataflow.leave(interest)
            self.tenants.forget_unused()
            raise
        return dataflow

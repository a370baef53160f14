"""Who is interested in what, and which dataflow serves them: made on interest, undone on uninterest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from os import PathLike
from typing import Any

from kpg.errors import ProgramError
from kpg.observe.drain import Drain
from kpg.observe.event_log import unlogged
from kpg.observe.granularity import ClockGranularity
from kpg.observe.sinks import Sink, open_sink
from kpg.service.asking import Arguments, Asking, Row
from kpg.service.following import GranularInterest, SinkInterest
from kpg.service.interest import Interest
from kpg.service.sharing import Place, check_sharing, schema_without_tokens
from kpg.service.tenants import Tenancy


@dataclass(frozen=True, slots=True)
class Asked:
    """What somebody wants to follow, and how."""

    name: str
    arguments: Arguments | None = None
    owner: Any = None
    sharing: str = "auto"
    joins: str = "auto"
    granularity: float | None = None
    log: bool = True
    sink: Sink | Mapping[str, Any] | None = None


class Register:
    """All interests, their places and their owners."""

    def __init__(self, asking: Asking, clock: Callable[[], float], sinks: str | PathLike[str] | None) -> None:
        self.asking = asking
        self.builder = asking.builder
        self.living: dict[int, Interest] = {}
        self._clock = clock
        self._sinks = sinks
        self._places: dict[int, Place] = {}
        self._drains: dict[int, Drain] = {}
        self._owned: defaultdict[Any, set[int]] = defaultdict(set)
        self._next = 1

    def add(self, asked: Asked) -> Interest:
        """Serve one more interest."""
        self.builder.limits.check_queries(asked.owner, len(self._owned.get(asked.owner, ())))
        sharing = check_sharing(asked.sharing, asked.arguments is not None)
        if asked.joins != "auto":  # a hint is for one's own dataflow
            sharing = "nothing"
        sink = open_sink(asked.sink, self._sinks) if isinstance(asked.sink, Mapping) else asked.sink
        interest = self._made(asked)
        interest.sharing = sharing
        with nullcontext() if asked.log else unlogged(self.builder.db):
            place = self._place(interest, sharing, asked)
        self._next += 1
        self.living[interest.id] = interest
        self._places[interest.id] = place
        self._owned[asked.owner].add(interest.id)
        if sink is not None:
            followed = SinkInterest(interest, place.output)
            followed.drain = Drain(self.builder.db, followed.take, followed.frontier, sink)
            self._drains[interest.id] = followed.drain
        return interest

    def remove(self, interest: Interest) -> None:
        """Serve an interest no longer; may be repeated."""
        if self.living.pop(interest.id, None) is None:
            return
        self._owned[interest.owner].discard(interest.id)
        if not self._owned[interest.owner]:
            del self._owned[interest.owner]
        place = self._places.pop(interest.id)
        drain = self._drains.pop(interest.id, None)
        if drain is not None:
            drain.close()
        interest.end()
        place.leave(interest)
        self.builder.forget_unused()
        self.asking.forget_unused()

    def of(self, owner: Any) -> list[Interest]:
        """The interests of an owner."""
        return [self.living[number] for number in sorted(self._owned.get(owner, ()))]

    def arguments(self, interest: Interest, arguments: Arguments) -> tuple[Tenancy, list[Row]]:
        """Where the arguments of an interest can be changed, and some as rows."""
        place = self._places.get(interest.id)
        if not isinstance(place, Tenancy):
            raise ProgramError(f"the arguments of this interest in {interest.name} cannot be changed")
        columns, rows = self.asking.rows(interest.name, arguments)
        bound = place.parameters.schema.names[1:]
        if columns != bound:
            raise ProgramError(f"this interest in {interest.name} gives {', '.join(bound)}")
        return place, rows

    # Places

    def _made(self, asked: Asked) -> Interest:
        builder = self.builder
        relation = builder.relation(asked.name)
        schema = schema_without_tokens(relation)
        given = (builder.db, self._next, asked.name, relation.columns, schema, asked.owner, builder.limits)
        if asked.granularity is None:
            return Interest(*given)
        return GranularInterest(ClockGranularity(asked.granularity, self._clock), *given)

    def _place(self, interest: Interest, sharing: str, asked: Asked) -> Place:
        if asked.arguments is not None:
            return self._with_arguments(interest, sharing, asked.arguments, asked.joins)
        if sharing == "tenants":
            return self._join(interest, *self.asking.lifted(interest.name))
        if sharing == "nothing":
            label = f"answer {interest.name} #{interest.id}"
            answer = self.builder.build(interest.name, False, label, asked.joins)
        else:
            answer = self.builder.answer(interest.name, reuse=sharing == "trunk")
        answer.join(interest)
        return answer

    def _with_arguments(self, interest: Interest, sharing: str, arguments: Arguments, joins: str) -> Place:
        columns, rows = self.asking.rows(interest.name, arguments)
        if sharing == "trunk":
            if len(rows) > 1:
                raise ProgramError("one filter on a trunk has one argument", hint='Use sharing="tenants".')
            private = self.builder.filtered(interest.name, dict(zip(columns, rows[0], strict=True)))
            private.join(interest)
            return private
        if sharing == "nothing":
            return self._join(interest, self.asking.asked(interest.name, columns, joins), *rows)
        return self._join(interest, self.asking.tenancy(interest.name, columns), *rows)

    def _join(self, interest: Interest, tenancy: Tenancy, *rows: Row) -> Place:
        try:
            tenancy.join(interest, rows)
        except BaseException:
            tenancy.leave(interest)
            self.asking.forget_unused()
            raise
        return tenancy

"""The query service: live relations, rules that are built when somebody is interested, and answers that are kept.

    service = Service(db)
    service.create_relation("edge", {"x": int, "y": int})
    t = service.transact([Change("edge", (1, 2)), Change("edge", (2, 3))])      one time for all of them
    service.register("tc(x, y) :- edge(x, y). tc(x, z) :- tc(x, y), edge(y, z).")   checked and stored, nothing built
    interest = service.interest("tc", arguments={"x": 1})                       built now, for what is asked
    interest.take()                                                             the rows, then each change
    service.uninterest(interest)                                                dropped with the last

One thread, no sockets, no clock but the one it is given, which only granularity asks: the same calls in the same order
do the same everywhere. On a durable db relations, their rows and rules are there again after a restart; interests are
not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from time import monotonic
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kpg.errors import InUse, NameTaken, ProgramError
from kpg.observe.attributes import ATTRIBUTES
from kpg.observe.attributes import known as known_attributes
from kpg.observe.event_log import EventLog
from kpg.observe.sinks import Sink
from kpg.query.ir.program import Relation
from kpg.service.asking import Arguments, Asking
from kpg.service.catalog import Catalog
from kpg.service.changes import Change
from kpg.service.explain import explain
from kpg.service.interest import Interest
from kpg.service.languages import read_rules
from kpg.service.limits import Limits
from kpg.service.meta import DECLARED, PREFIX, Meta
from kpg.service.oneshot import OneShot
from kpg.service.register import Asked, Register
from kpg.service.relations import Declared, declare_attribute, declare_relation
from kpg.service.rules import RuleStore, reads_of
from kpg.service.sharing import Builder
from kpg.service.stored import Stored

if TYPE_CHECKING:
    from kpg.api.database import Database

NO_LIMITS = Limits()


class Service:
    """Relations, rules and interests on one db, which it owns."""

    def __init__(
        self,
        db: Database,
        *,
        limits: Limits = NO_LIMITS,
        clock: Callable[[], float] = monotonic,
        sinks: str | PathLike[str] | None = None,  # the directory that clients' sinks write to; None: they may not
    ) -> None:
        if db.config.coordinates != 1 or not db.alone:
            raise ProgramError(
                "a service needs a db of one clock, in this process", hint="Open it without coordinates= and workers=."
            )
        self.db = db
        self._logs: list[EventLog] = []
        self._observed: set[str] = set()  # attributes that end with the service
        self.limits = limits
        self.catalog = Catalog(db)
        self.rules = RuleStore()
        self.builder = Builder(db, self.catalog, self.rules, limits)
        self.asking = Asking(self.builder)
        self._one_shot = OneShot(db, self.builder, self.asking, limits)
        self._register = Register(self.asking, clock, sinks)
        self.interests = self._register.living
        self._stored = Stored(db)
        self._meta = Meta(self.catalog, self.rules)
        for declared in self._stored.relations():
            self.catalog.add(declared)
        for number, language, source, name in self._stored.texts():
            text = read_rules(language, source, name, self.known())
            self._meta.need(self.rules.add(language, source, name, text, number).reads)

    # Relations

    def create_relation(
        self,
        name: str,
        columns: Mapping[str, Any],
        *,
        semantics: str = "distinct",
        key: str | Sequence[str] | None = None,
        order: str | None = None,
    ) -> None:
        """A new base relation; the same declaration again is no error."""
        self._create(declare_relation(name, columns, semantics, key, order))

    def create_attribute(self, name: str, kind: Any, *, semantics: str = "distinct", entity: Any = int) -> None:
        """A new attribute, like :person/name: entities and values."""
        self._create(declare_attribute(name, kind, semantics, entity))

    def _create(self, declared: Declared) -> None:
        found = self.catalog.facts.get(declared.name)
        if found is not None and found.declared == declared:
            return
        if found is not None or declared.name in self.rules.by_name or declared.name.startswith(PREFIX):
            raise NameTaken(f"there is {declared.name!r} already", hint="Choose another name.")
        self.catalog.add(declared)
        self._stored.add_relation(declared)
        self._meta.update()

    def observe(self, attributes: Iterable[str] | None = None, *, every: float = 0.0) -> tuple[str, ...]:
        """Have attributes of the log of the db as relations, all if none are named; those that were new.

        Ask about them with `log=False`, or the asking is news to the log with each advance; `every` so many seconds,
        at most, it is written. It ends with the service, and so do rules that read them.
        """
        wanted = [name for name in known_attributes(attributes) if name not in self.catalog.facts]
        self._logs.append(EventLog(self.db, wanted, every=every))
        for name in wanted:
            self.catalog.add(declare_attribute(name, ATTRIBUTES[name].value, "cardinality-one", int))
        self._observed.update(wanted)
        return tuple(wanted)

    def close_input(self, relation: str) -> None:
        """No more changes of a relation will come; what is there stays."""
        self.catalog.find(relation).close()

    # Time and data

    def transact(self, changes: Sequence[Change], *, origin: tuple[str, int] | None = None) -> int:
        """Make changes, all at one time, which is returned: all of them, or none if one of them is wrong."""
        return self.catalog.transact(self.catalog.prepared(changes), origin)

    def put(self, relation: str, rows: Any, diff: int = 1, *, origin: tuple[str, int] | None = None) -> int:
        """Many rows of one relation at one time: tuples, or columns in NumPy, Arrow, pandas or polars."""
        return self.catalog.transact(self.catalog.rows(relation, rows, diff), origin)

    def advance(self, to: int | None = None) -> int:
        """Close the open time, or all before `to`; the last time that is closed."""
        if to is None:
            return self.db.advance()
        self.db.advance_to(to)
        return to - 1

    @property
    def time(self) -> int:
        """The open time: everything before it is closed."""
        return self.db.epoch

    # Rules

    def register(self, text: str, *, language: str = "datalog", name: str | None = None) -> tuple[str, ...]:
        """Check and store rules; returns what can be asked for. Nothing is built."""
        same = self.rules.same(language, text, name)
        if same is not None:
            return same.text.names
        found = read_rules(language, text, name, self.known())
        for relation in found.bases:
            self.create_relation(relation.name, {column.name: column.kind for column in relation.columns})
        if not found.rules:
            return ()
        made = self.rules.add(language, text, name, found)
        if self._observed.isdisjoint(self.rules.needed(made.text.names)[1]):  # else it ends with what it reads
            self._stored.add_text(made)
        self._meta.need(made.reads)
        self._meta.update()
        return made.text.names

    def unregister(self, name: str) -> None:
        """Forget the text that a rule is in; refused while somebody is interested in it, or rules read it."""
        own = {relation.name for relation in self.rules.find(name).text.relations}
        held = sorted({interest.name for interest in self.interests.values()} & own)
        held += [answer.relation.name for answer in self.builder.answers.values() if answer.relation.name in own]
        if held:
            hint = "Uninterest it first."
            raise InUse(f"cannot unregister {name!r}", detail=f"There is interest in {held[0]}.", hint=hint)
        self._stored.remove_text(self.rules.remove(name))
        self._meta.update()

    def known(self) -> dict[str, Relation]:
        """Base relations and rules, as programs name them."""
        own = {declared.name: declared.in_program() for declared in DECLARED}
        return own | self.catalog.relations() | self.rules.relations()

    # Interests

    def interest(
        self,
        name: str,
        *,
        arguments: Arguments | None = None,
        owner: Any = None,
        sharing: str = "auto",
        joins: str = "auto",
        granularity: float | None = None,
        log: bool = True,
        sink: Sink | Mapping[str, Any] | None = None,
    ) -> Interest:
        """Follow an answer: its rows, then each change. The first interest builds it.

        joins         how its rules are joined, in a dataflow of its own: binary, delta or hector
        granularity   seconds: changes come, summed up, at full intervals only
        log           False: what is built for it is not told of in the log of the db
        sink          where changes go instead of to `take`; or what `kpg.observe.sinks.open_sink` makes one of
        """
        self._meta.need({name})
        asked = Asked(name, arguments, owner, sharing, joins, granularity, log, sink)
        return self._register.add(asked)

    def add_arguments(self, interest: Interest, arguments: Arguments) -> None:
        """Ask for more, on the same dataflow: an update of its parameters."""
        tenancy, rows = self._register.arguments(interest, arguments)
        tenancy.add(interest, rows)

    def remove_arguments(self, interest: Interest, arguments: Arguments) -> None:
        """Ask for less: the rows that go are told as changes."""
        tenancy, rows = self._register.arguments(interest, arguments)
        tenancy.remove(interest, rows)

    def uninterest(self, interest: Interest) -> None:
        """Follow an answer no longer; with the last interest it is dropped. May be repeated."""
        self._register.remove(interest)

    def drop_owner(self, owner: Any) -> None:
        """Drop all interests of an owner who has gone."""
        for interest in self._register.of(owner):
            self.uninterest(interest)

    # One shot

    def query(
        self,
        text_or_name: str,
        *,
        language: str | None = None,
        arguments: Arguments | None = None,
        as_of: int | None = None,
        limit: int | None = None,
    ) -> pa.Table:
        """The rows of an answer as of a time, the last closed one if not said; what is built for it is dropped.

        With a language, the text of a query or of rules, of which the last is answered; nothing of it is registered.
        """
        if language is None:
            self._meta.need({text_or_name})
            table = self._one_shot.ask(text_or_name, arguments, as_of)
        else:
            text = read_rules(language, text_or_name, self.builder.label("query"), self.known())
            self._meta.need(set(reads_of(text)))
            table = self._one_shot.ask_text(text, arguments, as_of)
        self.limits.check_rows(text_or_name, table.num_rows)
        return table if limit is None else table.slice(0, limit)

    def explain(self, name: str) -> str:
        """How a rule is, or would be, computed, and what it shares."""
        return explain(self.builder, self.asking, self.interests.values(), name)

    def close(self) -> None:
        """Drop all interests; the db stays open."""
        for interest in list(self.interests.values()):
            self.uninterest(interest)
        while self._logs:
            self._logs.pop().close()

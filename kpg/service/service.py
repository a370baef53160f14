"""The query service: live relations, rules that are built on the first interest, and answers kept up to date.

    service = Service(db)
    service.create_relation("edge", {"x": int, "y": int})
    t = service.transact([Change("edge", (1, 2)), Change("edge", (2, 3))])      all changes at one time
    service.register("tc(x, y) :- edge(x, y). tc(x, z) :- tc(x, y), edge(y, z).")   checked and stored, not built
    interest = service.interest("tc", arguments={"x": 1})                       built now, for these arguments
    interest.take()                                                             the rows, then each change
    service.uninterest(interest)                                                the last one drops the dataflow

A service runs on one thread and uses no sockets. Only granularity reads the clock, which the caller may replace.
Therefore the same calls in the same order have the same effects everywhere, on one worker and on several. On a durable
db, relations, their rows and rules survive a restart; interests do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from os import PathLike
from time import monotonic
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kpg.api.usage_groups import UsageGroup
from kpg.errors import InUse, NameTaken, NotAuthorised, ProgramError, Stopped, TimeTooEarly, UndefinedName
from kpg.observe.attributes import ATTRIBUTES, resolve_attributes
from kpg.observe.event_log import EventLog
from kpg.observe.sinks import Sink
from kpg.query.ir.program import Relation
from kpg.query.source_text import did_you_mean
from kpg.service.base_relations import Catalog, Change, ChangeBlock, EncodedChanges
from kpg.service.grants import Grants
from kpg.service.hidden_rules import HiddenRules
from kpg.service.inspection import Inspector
from kpg.service.interests import InterestOptions, InterestRegistry
from kpg.service.languages import RuleText, check_functors, read_rules
from kpg.service.limits import Limits
from kpg.service.named_relations import words_of
from kpg.service.one_shot import OneShotQueries, explain
from kpg.service.planner import Planner, Wait, wait_for
from kpg.service.reading_rights import missing_right, missing_right_of_owners
from kpg.service.relation_declarations import (
    DeclarationStore,
    RelationDeclaration,
    check_name,
    declare_attribute,
    declare_relation,
)
from kpg.service.rules import RuleStore, relations_read
from kpg.service.scheduled_changes import ScheduledChanges
from kpg.service.sharing import AnswerBuilder, Arguments, TenantBuilder
from kpg.service.sql_relations import Result, SqlRelations, execute_text
from kpg.service.stored_counts import StoredCounts
from kpg.service.subscription import Interest
from kpg.service.system_relations import SYSTEM_PREFIX, SYSTEM_RELATIONS, SystemRelations
from kpg.sql.sql_states import QUERY_CANCELED, with_sqlstate

if TYPE_CHECKING:
    from kpg.api.contracts import Database
    from kpg.sql.session.query_result import QueryResult
    from kpg.sql.session.sql_session import SqlSession

RuleReader = Callable[[str, str, str | None, Mapping[str, Relation]], RuleText]
DEFAULT_LIMITS = Limits()
SYSTEM_IN_PROGRAM = {declaration.name: declaration.in_program() for declaration in SYSTEM_RELATIONS}


class Service:
    """Relations, rules and interests on one db, which the service owns."""

    def __init__(
        self,
        db: Database,
        *,
        limits: Limits = DEFAULT_LIMITS,
        clock: Callable[[], float] = monotonic,
        sinks: str | PathLike[str] | None = None,  # the directory that clients' sinks write to; None disables them
        functors: Mapping[str, Callable[..., Any]] | None = None,  # the functions that rules may declare and call
        wait: Wait = wait_for,  # returns when a large text is planned, in a process of its own
    ) -> None:
        if db.config.coordinates != 1:
            raise ProgramError("a service needs a db with one clock", hint="Open it without coordinates=.")
        self.db = db
        for functor, function in (functors or {}).items():
            db.functor(functor, function)
        self._logs: list[EventLog] = []
        self._observed: set[str] = set()  # attributes of the event log, which end with the service
        self.limits = limits
        self.catalog = Catalog(db)
        self.rules = RuleStore()
        self.planner = Planner(limits, wait)
        self.guard = db.limit_queries(limits.query)
        self._usage: dict[tuple[str, Any], UsageGroup] = {}  # by "session" or "tenant" and its name
        self.grants = Grants(db)
        self.hidden = HiddenRules(self.grants, self.rules)
        self.answers = AnswerBuilder(db, self.catalog, self.rules, limits, self.planner, self.guard)
        self.tenants = TenantBuilder(self.answers)
        self._one_shot = OneShotQueries(db, self.answers, self.tenants, limits)
        self._registry = InterestRegistry(self.tenants, clock, sinks)
        self.interests = self._registry.interests
        self._inspector = Inspector(self)
        self._store = DeclarationStore(db)
        self._system = SystemRelations(db, self.catalog, self.rules)
        self._stored = StoredCounts(limits)
        for declaration in self._store.relations():
            self.catalog.add(declaration)
            self._stored.add(self.grants.owner(declaration.name), relations=1)
        self.sql = SqlRelations(db, self.catalog, self.planner, self._require_unused, self._registry.new_number)
        self.sql.snapshots.max_idle_seconds = limits.snapshot_seconds
        if db.is_durable:
            self.sql.publish()  # rules read the tables and views of SQL
        for number, language, source, name in self._store.texts():
            text = self._read_beside_mentioned(read_rules, language, source, name)
            self._stored.add(self.grants.owner(text.relations[0].name), rules=len(text.rules))
            self._system.require(self.rules.add(language, source, name, text, number).reads)
        self._scheduled = ScheduledChanges(self.catalog)

    # Relations

    def _require_unused(self, names: Sequence[str]) -> None:
        """Raise if a rule or an interest reads one of the names, which SQL is about to drop."""
        dropped = set(names)
        held = sorted(self._followed_names() & dropped)
        readers = [name for text in self.rules.readers(dropped) for name in text.text.names]
        if held or readers:
            what = f"an interest in {held[0]}" if held else f"the rule {readers[0]}"
            error = InUse(f"cannot drop {', '.join(sorted(dropped))}: {what} reads it", hint="End that first.")
            error.sqlstate = "55006"
            raise error

    def _followed_names(self) -> set[str]:
        """Return the names that interests follow; one whose right was revoked follows nothing."""
        return {interest.name for interest in self.interests.values() if not interest.has_left}

    def create_relation(
        self,
        name: str,
        columns: Mapping[str, Any],
        *,
        semantics: str = "distinct",
        key: str | Sequence[str] | None = None,
        order: str | None = None,
    ) -> None:
        """Create a base relation; repeating the same declaration has no effect."""
        self._create(declare_relation(name, columns, semantics, key, order))
        self._system.update()

    def create_attribute(self, name: str, kind: Any, *, semantics: str = "distinct", entity: Any = int) -> None:
        """Create an attribute such as :person/name: a relation of entities and values."""
        self._create(declare_attribute(name, kind, semantics, entity))
        self._system.update()

    def _create(self, declaration: RelationDeclaration) -> None:
        name = declaration.name
        self.grants.check_namespace([name])
        existing = self.catalog.relations.get(name)
        if existing is not None and existing.declaration == declaration:
            return
        if existing is not None or name in self.rules.by_name or name.startswith(SYSTEM_PREFIX):
            raise NameTaken(f"{name!r} exists already", hint="Choose another name.")
        self._stored.require(self.grants.tenant, relations=1)
        self.catalog.add(declaration)
        self._store.add_relation(declaration)
        self._stored.add(self.grants.tenant, relations=1)
        self.grants.own([name])

    def drop_relation(self, name: str) -> None:
        """Drop a relation or attribute with its rows; raise while a rule, an interest or a view of SQL reads it."""
        self.grants.require_owner(name)
        self.catalog.find(name)
        if name.startswith(SYSTEM_PREFIX):
            raise InUse(f"{name} is written by the service itself")
        self.rules.require_unread({name}, f"cannot drop {name!r}", partial(self.grants.may, "read"))
        if name in self._followed_names():
            detail = f"There is an interest in {name}."
            raise InUse(f"cannot drop {name!r}", detail=detail, hint="Uninterest it first.")
        self.sql.require_unread(name)
        self.catalog.drop(name)
        self._store.remove_relation(name)
        self._scheduled.forget(name)
        self._stored.add(self.grants.owner(name), relations=-1)
        self.grants.forget([name])
        self.sql.replan()
        self._system.update()

    def observe(self, attributes: Iterable[str] | None = None, *, every: float = 0.0) -> tuple[str, ...]:
        """Make attributes of the db's event log relations of the service, all by default; return the new ones.

        Read them with `log=False`: otherwise the reading dataflow adds to the log with each advance. `every` is the
        minimum number of seconds between two writes of the log. The relations, and rules that read them, end with the
        service.
        """
        wanted = [name for name in resolve_attributes(attributes) if name not in self.catalog.relations]
        self._logs.append(EventLog(self.db, wanted, every=every))
        for name in wanted:
            self.catalog.add(declare_attribute(name, ATTRIBUTES[name].value, "cardinality-one", int))
        self._observed.update(wanted)
        return tuple(wanted)

    def close_input(self, relation: str) -> None:
        """Close a relation: its rows stay, and further changes are refused."""
        self.catalog.find(relation).close()

    # Time and data

    def transact(
        self, changes: Sequence[Change], *, at: int | None = None, origin: tuple[str, int] | None = None
    ) -> int:
        """Apply changes at one time and return that time; if one of them is wrong, none is applied.

        The time is the open one, or the later one that `at` names.
        """
        if self.grants.tenant is not None:
            self.grants.require("write", {change.relation for change in changes})
        return self._apply(self.catalog.encode_changes(changes), at, origin)

    def transact_blocks(
        self, blocks: Sequence[ChangeBlock], *, at: int | None = None, origin: tuple[str, int] | None = None
    ) -> int:
        """Apply blocks of rows as `transact` does; while large ones are encoded, other requests run."""
        if self.grants.tenant is not None:
            self.grants.require("write", {block.relation for block in blocks if block.rows})
        return self._apply(self.catalog.encode_blocks(blocks), at, origin)

    def _apply(self, encoded: list[EncodedChanges], at: int | None, origin: tuple[str, int] | None) -> int:
        if at is None or at == self.time:
            return self.catalog.transact(encoded, origin, self._scheduled.apply_due)
        if at < self.time:
            raise TimeTooEarly(f"cannot change relations at {at}", detail=f"The open time is {self.time}.")
        self._scheduled.add(encoded, at, origin)
        return at

    def put(self, relation: str, rows: Any, diff: int = 1, *, origin: tuple[str, int] | None = None) -> int:
        """Apply many rows of one relation at one time: tuples, or columns in NumPy, Arrow, pandas or polars."""
        self.grants.require("write", [relation])
        return self.catalog.transact(self.catalog.encode_rows(relation, rows, diff), origin, self._scheduled.apply_due)

    def advance(self, to: int | None = None) -> int:
        """Close the open time, or all times before `to`; return the last closed time."""
        wait = not self.db.answers_lag
        if to is None:
            return self.db.advance(wait=wait)
        while (scheduled := self._scheduled.next_time) is not None and scheduled < to:
            self.db.advance_to(max(scheduled, self.time), wait=wait)
            self.db.advance(wait=wait)
        self.db.advance_to(max(to, self.time), wait=wait)
        return to - 1

    @property
    def time(self) -> int:
        """The open time: everything before it is closed."""
        return self.db.epoch

    # Rules

    def register(self, text: str, *, language: str = "datalog", name: str | None = None) -> tuple[str, ...]:
        """Check and store rules; return the names that can be asked for. Nothing is built."""
        identical = self.rules.find_identical(language, text, name)
        if identical is not None:
            self.grants.require("read", identical.text.names)
            return identical.text.names
        rule_text = self._read_rules(language, text, name)
        own = [relation.name for relation in rule_text.relations]
        self.grants.check_namespace([*own, *(relation.name for relation in rule_text.bases)])
        self._require_free(own)
        check_functors(rule_text.functors, self.db.functors)
        new_relations = sum(relation.name not in self.catalog.relations for relation in rule_text.bases)
        self._stored.require(self.grants.tenant, rules=len(rule_text.rules), relations=new_relations)
        for relation in rule_text.bases:
            check_name(relation.name, attribute=False)
            self._create(RelationDeclaration(relation.name, tuple((one.name, one.kind) for one in relation.columns)))
        if not rule_text.rules:
            self._system.update()
            return ()
        registered = self.rules.add(language, text, name, rule_text)
        self.grants.own(own)
        self._stored.add(self.grants.tenant, rules=len(rule_text.rules))
        if not self._reads_observed(rule_text.names):  # else it ends with the event log
            self._store.add_text(registered)
        self._system.require(registered.reads)
        self._system.update()
        return rule_text.names

    def _reads_observed(self, names: Sequence[str]) -> bool:
        """Return whether some rules read attributes of the event log."""
        return bool(self._observed) and not self._observed.isdisjoint(self.rules.needed(names)[1])

    def _read_rules(self, language: str, text: str, name: str | None) -> RuleText:
        """Read and check a text; again if what it names has changed meanwhile: others run unless the text is short."""
        with nullcontext() if self.planner.is_read_whole(text) else self.db.in_turns():
            return self._read_beside_mentioned(self.planner.rules, language, text, name)

    def _read_beside_mentioned(self, read: RuleReader, language: str, text: str, name: str | None) -> RuleText:
        """Read a text beside the relations that it mentions; the hints of errors name others, too."""
        words = words_of(f"{text} {name}")
        while True:
            existing = self._mentioned(language, words)
            try:
                rule_text = read(language, text, name, existing)
            except UndefinedName as error:
                if error.name is not None:
                    error.hint = did_you_mean(error.name, (*error.existing, *self.relations()))
                raise
            now = self._mentioned(language, words)
            own = [relation.name for relation in (*rule_text.relations, *rule_text.bases)]
            if all(existing.get(used) == now.get(used) for used in (*own, *relations_read(rule_text))):
                return rule_text

    def _mentioned(self, language: str, words: set[str]) -> dict[str, Relation]:
        """Return the relations that a text with some words can name, and the tenant may read."""
        return self.grants.visible(SYSTEM_IN_PROGRAM | self.answers.mentioned(language, words))

    def execute_sql(
        self,
        text: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        owner: Any = None,
        limits: Mapping[str, float | None] | None = None,
    ) -> QueryResult:
        """Execute SQL statements in the session of a client; return the result of the last one.

        Tables and materialized views become relations that rules, queries and interests read. `limits` are other
        values for some `QueryLimits`.
        """
        return self.within_sql(owner, lambda session: execute_text(session, text, parameters or {}), limits)

    def within_sql(
        self, owner: Any, function: Callable[[SqlSession], Result], limits: Mapping[str, float | None] | None = None
    ) -> Result:
        """Call a function with the SQL session of a client, with its rights and limits."""
        if self.grants.tenant is not None:
            raise NotAuthorised(
                f"tenant {self.grants.tenant} cannot use SQL",
                detail="SQL has one catalog for all clients, which knows no namespaces and no grants.",
                hint="Read and write relations with rules, queries and transactions.",
            )
        with self.guard.raised(limits, self._groups(owner)):
            result = self.sql.within(owner, function)
        self._system.update()
        return result

    def in_transaction(self, owner: Any) -> bool:
        """Whether a client has an open transaction of SQL."""
        return self.sql.in_transaction(owner)

    def unregister(self, name: str) -> None:
        """Remove the text that defines a rule; raise while an interest or another rule reads it."""
        self.grants.require_owner(name)
        rule_text = self.rules.find(name).text
        own = {relation.name for relation in rule_text.relations}
        held = sorted(self._followed_names() & own)
        held += [answer.relation.name for answer in self.answers.answers.values() if answer.relation.name in own]
        if held:
            hint = "Uninterest it first."
            raise InUse(f"cannot unregister {name!r}", detail=f"There is an interest in {held[0]}.", hint=hint)
        self._store.remove_text(self.rules.remove(name, partial(self.grants.may, "read")))
        self._stored.add(self.grants.owner(rule_text.relations[0].name), rules=-len(rule_text.rules))
        self.grants.forget(own)
        self._system.update()

    def relations(self) -> dict[str, Relation]:
        """Return base relations, system relations and rules, as programs name them, that the tenant may read."""
        return self.grants.visible(SYSTEM_IN_PROGRAM | self.catalog.named.by_name | self.rules.readable.by_name)

    def _require_free(self, names: Iterable[str]) -> None:
        """Raise if one of the names is in use, by whomever."""
        for name in names:
            if name in self.catalog.relations or name in self.rules.by_name:
                raise NameTaken(f"{name!r} exists already", hint="Choose another name, or unregister that one first.")

    def grant(self, name: str, tenant: str, right: str) -> None:
        """Let a tenant ("*" for all) read or write a relation, attribute or rule; see `kpg.service.grants`."""
        self.grants.require_owner(name)  # before the name is looked up: the hints of errors name what is similar
        self.answers.relation(name)  # raises if there is none
        self.grants.grant(name, tenant, right)

    def revoke(self, name: str, tenant: str, right: str) -> None:
        """Take a right back from a tenant ("*" for all). Interests that need it get an error instead of changes."""
        self.grants.revoke(name, tenant, right)
        for interest in list(self.interests.values()):
            error = missing_right(self.grants, self.rules, interest.tenant, interest.name)
            if error is not None:
                self._registry.refuse(interest, error)

    def _require_readable(self, names: Sequence[str]) -> None:
        """Raise if the owner of a rule behind some names may no longer read what it reads."""
        error = missing_right_of_owners(self.grants, self.rules, names)
        if error is not None:
            raise error
        self._system.require(set(names))

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
        limits: Mapping[str, float | None] | None = None,
    ) -> Interest:
        """Follow an answer: its rows, then each change. The first interest builds it.

        sharing       which dataflows it shares: auto, nothing, answers or tenants; see `kpg.service.sharing`
        joins         the join algorithm, in a private dataflow: binary, delta or hector
        granularity   seconds; changes are consolidated and delivered at the ends of intervals only
        log           False excludes the dataflows built for it from the db's event log
        sink          receives the changes instead of `take`; a Sink, or a description for `kpg.observe.sinks.open_sink`
        limits        other values for some `QueryLimits`; only interests with equal limits share a dataflow
        """
        self.grants.require("read", [name])
        tenant = self.grants.tenant
        with self._asking([name], owner, limits):
            self._registry.wait_for_turn(name, owner)
            options = InterestOptions(name, arguments, owner, sharing, joins, granularity, log, sink)
            interest = self._registry.add(options)
        interest.tenant = tenant
        interest.shown = lambda error: self.hidden.shown(error, tenant, [name])
        return interest

    @contextmanager
    def _asking(self, names: Sequence[str], owner: Any, limits: Mapping[str, float | None] | None) -> Iterator[None]:
        """Ask in this block for answers that read some names, with the limits of an owner and of the request."""
        with self.hidden.kept_from(self.grants.tenant, names):
            self._require_readable(names)
            with self.guard.raised(limits, self._groups(owner)):
                yield

    def _groups(self, owner: Any) -> tuple[UsageGroup, ...]:
        """Return the groups that the queries of an owner count for: those of the owner and of the tenant."""
        groups: list[UsageGroup] = []
        for kind, name, limits in (
            ("session", owner, self.limits.session),
            ("tenant", self.grants.tenant, self.limits.tenant),
        ):
            if name is not None:
                groups.append(self._usage.setdefault((kind, name), UsageGroup(kind, limits)))
        return tuple(groups)

    def add_arguments(self, interest: Interest, arguments: Arguments) -> None:
        """Add arguments to an interest: an update of its dataflow's parameters."""
        dataflow, rows = self._registry.arguments(interest, arguments)
        dataflow.add(interest, rows)

    def remove_arguments(self, interest: Interest, arguments: Arguments) -> None:
        """Remove arguments from an interest; it receives the removal of their rows as changes."""
        dataflow, rows = self._registry.arguments(interest, arguments)
        dataflow.remove(interest, rows)

    def uninterest(self, interest: Interest) -> None:
        """End an interest; the last one drops the dataflow. Repeating it has no effect."""
        self._registry.remove(interest)

    def stop(self, number: int) -> Any:
        """Stop the query of an interest or of a cursor: its owner gets `Stopped`, and no further changes.

        Return the owner, whose reads of a cursor may wait for changes.
        """
        followed = self.interests.get(number) or self.sql.followed().get(number)
        if followed is None:
            raise UndefinedName(f"there is no query {number}", hint="Inspect the table queries for the numbers.")
        error = Stopped(f"the query of {followed.name} was stopped", hint="Ask the administrator of the server.")
        if isinstance(followed, Interest):
            self._registry.refuse(followed, error)
        else:
            followed.subscription.stop(with_sqlstate(QUERY_CANCELED, error))
        self._inspector.forget()
        return followed.owner

    def change_owner(self, interest: Interest, owner: Any) -> None:
        """Make an interest that of another owner, which then counts it among its own."""
        self._registry.change_owner(interest, owner)

    def adopt(self, interest: Interest, owner: Any) -> None:
        """Make an interest that of another session, in whose share its dataflow runs now, too."""
        self.change_owner(interest, owner)
        groups = self._groups(owner) if interest.tenant is None else ()  # the share of a tenant stays
        with self.guard.raised(None, groups):
            self._registry.add_owner_of(interest)

    def drop_owner(self, owner: Any) -> None:
        """End all interests of an owner."""
        for interest in self._registry.of_owner(owner):
            self.uninterest(interest)
        self._registry.forget_owner(owner)
        self.sql.drop_owner(owner)
        if ("session", owner) in self._usage:
            self.guard.end_group(self._usage.pop(("session", owner)))

    # One-shot queries

    def query(
        self,
        text_or_name: str,
        *,
        language: str | None = None,
        arguments: Arguments | None = None,
        owner: Any = None,
        as_of: int | None = None,
        limit: int | None = None,
        limits: Mapping[str, float | None] | None = None,
    ) -> pa.Table:
        """Return the rows of an answer as of a time, by default the last closed one.

        With a language, the first argument is a query or rules in that language. The last rule is answered; nothing is
        registered. Dataflows built for the query are dropped. `limits` are other values for some `QueryLimits`.
        """
        if language is None:
            self.grants.require("read", [text_or_name])
            with self._asking([text_or_name], owner, limits):
                table = self._one_shot.query(text_or_name, arguments, as_of, limit)
        else:
            text = self._read_rules(language, text_or_name, self.answers.unique_label("query"))
            with self._asking(relations_read(text), owner, limits):
                table = self._one_shot.query_text(text, arguments, as_of, limit)
        self.limits.check_rows(text_or_name, table.num_rows)
        return table if limit is None else table.slice(0, limit)

    def explain(self, name: str) -> str:
        """Return how a rule is or would be computed, and what it shares with other queries."""
        self.grants.require("read", [name])
        is_hidden = bool(self.hidden.names(self.grants.tenant, [name]))
        return explain(self.answers, self.tenants, self.interests.values(), name, is_hidden)

    # Inspection

    def inspect(self, table: str, name: str | None = None) -> pa.Table:
        """Return the state of the service as a table; `kpg.service.inspection` lists the tables and their columns."""
        return self._inspector.table(table, name)

    def usage(self) -> dict[tuple[str, Any], UsageGroup]:
        """Return what the queries of each session and tenant use together, by kind and name."""
        return self._usage

    def close(self) -> None:
        """End all interests and event logs; the db stays open."""
        for interest in list(self.interests.values()):
            self.uninterest(interest)
        while self._logs:
            self._logs.pop().close()
        while self._usage:
            self.guard.end_group(self._usage.popitem()[1])

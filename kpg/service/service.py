"""The query service: live relations, rules that are built when somebody is interested, and answers that are kept.

    service = Service(db)
    service.create_relation("edge", {"x": int, "y": int})
    t = service.transact([Change("edge", (1, 2)), Change("edge", (2, 3))])      one time for all of them
    service.register("tc(x, y) :- edge(x, y). tc(x, z) :- tc(x, y), edge(y, z).")   checked and stored, nothing built
    interest = service.interest("tc")                                           built now
    interest.take()                                                             the rows, then each change
    service.uninterest(interest)                                                dropped with the last

One thread, no clocks, no sockets: the same calls in the same order do the same everywhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kpg.errors import Closed, InUse, NameTaken, SchemaMismatch, UndefinedName
from kpg.query.explain import explain
from kpg.query.ir.program import Relation
from kpg.query.source import did_you_mean
from kpg.service.answers import Answer
from kpg.service.changes import Change
from kpg.service.facts import Facts
from kpg.service.indexes import Indexed
from kpg.service.interest import Interest
from kpg.service.languages import read_rules
from kpg.service.limits import Limits
from kpg.service.relations import Declared, declare_attribute, declare_relation
from kpg.service.rules import RuleStore
from kpg.service.synthesis import build

if TYPE_CHECKING:
    from kpg.api.database import Database


class Service:
    """Relations, rules and interests on one db, which it owns."""

    def __init__(self, db: Database, *, limits: Limits = Limits()) -> None:  # noqa: B008
        self.db = db
        self.limits = limits
        self.rules = RuleStore()
        self.interests: dict[int, Interest] = {}
        self._facts: dict[str, Facts] = {}
        self._answers: dict[str, Answer] = {}
        self._places: dict[int, Answer] = {}
        self._owned: defaultdict[Any, set[int]] = defaultdict(set)
        self._next = 1

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
        found = self._facts.get(declared.name)
        if found is not None and found.declared == declared:
            return
        if found is not None or declared.name in self.rules.by_name:
            raise NameTaken(f"there is {declared.name!r} already", hint="Choose another name.")
        self._facts[declared.name] = Facts(self.db, declared)

    def facts(self, name: str) -> Facts:
        """A base relation by name."""
        if name not in self._facts:
            raise UndefinedName(f"no relation is called {name!r}", hint=did_you_mean(name, self._facts))
        return self._facts[name]

    def close_input(self, relation: str) -> None:
        """No more changes of a relation will come; what is there stays."""
        self.facts(relation).close()

    # Time and data

    def transact(self, changes: Sequence[Change], *, origin: tuple[str, int] | None = None) -> int:
        """Make changes, all at one time, which is returned: all of them, or none if one of them is wrong."""
        prepared = self._prepare(changes)

        def fill(db: Database) -> None:
            for facts, data, diffs in prepared:
                facts.apply(data, diffs)

        return self.db.transact(fill, origin=origin)

    def put(self, relation: str, rows: Any, diff: int = 1, *, origin: tuple[str, int] | None = None) -> int:
        """Many rows of one relation at one time: tuples, or columns in NumPy, Arrow, pandas or polars."""
        facts = self.facts(relation)
        data = facts.encode(rows)
        diffs = np.full(data.shape[1], diff, np.int64)
        return self.db.transact(lambda db: facts.apply(data, diffs), origin=origin)

    def _prepare(self, changes: Sequence[Change]) -> list[tuple[Facts, Any, Any]]:
        """Changes by relation, as lanes; the first that is wrong is named."""
        places: dict[str, list[int]] = {}
        for place, change in enumerate(changes):
            if change.relation not in places:
                places[change.relation] = []
                if change.relation not in self._facts:
                    hint = did_you_mean(change.relation, self._facts)
                    raise UndefinedName(f"change {place}: no relation is called {change.relation!r}", hint=hint)
            places[change.relation].append(place)
        return [self._encoded(self._facts[name], where, changes) for name, where in places.items()]

    def _encoded(self, facts: Facts, places: list[int], changes: Sequence[Change]) -> tuple[Facts, Any, Any]:
        if facts.input.closed:
            raise Closed(f"change {places[0]}: {facts.declared.name} is closed")
        diffs = [changes[place].diff for place in places]
        for place, diff in zip(places, diffs, strict=True):
            if not isinstance(diff, int) or isinstance(diff, bool) or diff == 0:
                raise SchemaMismatch(f"change {place}: {diff!r} is no diff", hint="+1 puts a row, -1 takes it away.")
        try:
            data = facts.encode([tuple(changes[place].row) for place in places])
        except (SchemaMismatch, TypeError):
            for place in places:
                try:
                    facts.encode([tuple(changes[place].row)])
                except (SchemaMismatch, TypeError) as error:
                    what = getattr(error, "what", str(error)).removeprefix("row 0 ").removeprefix("row 0: ")
                    raise SchemaMismatch(
                        f"change {place} of {facts.declared.name}: {what}", detail=getattr(error, "detail", None),
                        hint=getattr(error, "hint", None),
                    ) from None  # fmt: skip
            raise
        return facts, data, np.array(diffs, np.int64)

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
        return self.rules.add(language, text, name, found).text.names

    def unregister(self, name: str) -> None:
        """Forget the text that a rule is in; refused while somebody is interested in it or rules read it."""
        own = {relation.name for relation in self.rules.find(name).text.relations}
        held = sorted({interest.name for interest in self.interests.values()} & own)
        if held or own & set(self._answers):
            raise InUse(f"cannot unregister {name!r}", detail=f"There is interest in {', '.join(held) or name}.")
        self.rules.remove(name)

    def known(self) -> dict[str, Relation]:
        """Base relations and rules, as programs name them."""
        return self._declared() | self.rules.relations()

    def _declared(self) -> dict[str, Relation]:
        return {name: facts.declared.in_program() for name, facts in self._facts.items()}

    # Interests

    def interest(
        self,
        name: str,
        *,
        arguments: Mapping[str, Any] | None = None,
        owner: Any = None,
        sharing: str = "auto",
        joins: str = "auto",
        granularity: int | None = None,
        log: bool = True,
        sink: Any = None,
    ) -> Interest:
        """Follow an answer: its rows, then each change. The first interest builds it."""
        self.limits.check_queries(owner, len(self._owned[owner]))
        answer = self._answer(name)
        interest = Interest(
            self.db, self._next, name, answer.relation.columns, answer.output.schema.select(
                [column.name for column in answer.relation.columns]), owner, self.limits.waiting_rows,
        )  # fmt: skip
        self._next += 1
        answer.join(interest)
        self.interests[interest.id] = interest
        self._places[interest.id] = answer
        self._owned[owner].add(interest.id)
        return interest

    def uninterest(self, interest: Interest) -> None:
        """Follow an answer no longer; with the last interest it is dropped. May be repeated."""
        if self.interests.pop(interest.id, None) is None:
            return
        self._owned[interest.owner].discard(interest.id)
        if not self._owned[interest.owner]:
            del self._owned[interest.owner]
        answer = self._places.pop(interest.id)
        interest.end()
        answer.leave(interest)
        self._forget_unused()

    def drop_owner(self, owner: Any) -> None:
        """Drop all interests of an owner who has gone."""
        for number in sorted(self._owned.get(owner, ())):
            self.uninterest(self.interests[number])

    def _answer(self, name: str) -> Answer:
        """The answer of a rule, built if it is not there."""
        found = self._answers.get(name)
        if found is None or not found.living:
            self.limits.check_memory(name)
            found = self._answers[name] = self._build(name)
        return found

    def _build(self, name: str) -> Answer:
        if name not in self._facts:
            self.rules.find(name)
        program = self.rules.program([name], self._declared())
        built = build(self.db, program, name, f"answer {name}", self._find, self.limits.rounds)
        if self.db.dirty:
            self.db.advance()
        return Answer(built.relation, built.output, built.held)

    def _find(self, name: str) -> Indexed:
        return self._facts[name].input

    def _forget_unused(self) -> None:
        self._answers = {name: answer for name, answer in self._answers.items() if answer.users}

    # One shot

    def query(
        self,
        text_or_name: str,
        *,
        language: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        as_of: int | None = None,
        limit: int | None = None,
    ) -> pa.Table:
        """The rows of an answer as of a time, the last closed one if not said; what is built for it is dropped."""
        name = text_or_name
        answer = self._answer(name)
        answer.users += 1
        try:
            table = answer.output.snapshot(as_of)
        finally:
            answer.release()
            self._forget_unused()
        self.limits.check_rows(name, table.num_rows)
        return table if limit is None else table.slice(0, limit)

    def explain(self, name: str) -> str:
        """How a rule is, or would be, computed, and what it shares."""
        from kpg.query.ir.compile import compile

        return explain(compile(self.rules.program([name], self._declared())))

    def close(self) -> None:
        """Drop all interests; the db stays open."""
        for interest in list(self.interests.values()):
            self.uninterest(interest)

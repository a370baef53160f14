"""How an interest is served: by which dataflow, shared with whom, and why.

    without arguments   nothing    a dataflow of its own, from base relations
                        auto       one answer for all who are interested, from base relations
                        trunk      one answer for all, and each rule that it reads is an answer of its own as well
    with arguments      tenants    one dataflow for all arguments (auto)
                        trunk      a filter of its own on the one answer for all
                        nothing    a dataflow of its own, for its arguments alone

At each rule that an answer reads there is a choice: derive it anew, so that constants and joins reach into it and only
the indexes of base relations are shared, or reuse a trunk, which is derived once for all and no more selective than its
rule. The default is to derive.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from kpg.columns.functions import col, lit
from kpg.columns.schema import Schema
from kpg.errors import ProgramError, UndefinedName
from kpg.query.ir.program import Program, Relation
from kpg.query.ir.rewrites.stratify import dependencies, strongly_connected
from kpg.query.lower.lower_program import schema_of
from kpg.query.source_text import did_you_mean
from kpg.service.answers import Answer
from kpg.service.catalog import Catalog
from kpg.service.indexes import Indexed
from kpg.service.languages import Text
from kpg.service.limits import Limits
from kpg.service.private import Private
from kpg.service.rules import RuleStore
from kpg.service.synthesis import Synthesis
from kpg.service.tenants import Tenancy

if TYPE_CHECKING:
    from kpg.api.database import Database

Sharing = Literal["auto", "nothing", "trunk", "tenants"]
SHARINGS: tuple[Sharing, ...] = get_args(Sharing)
Place: TypeAlias = Answer | Tenancy | Private


def check_sharing(asked: str, arguments: bool) -> Sharing:
    """A way to share, by name."""
    for known in SHARINGS:
        if known == asked:
            return "tenants" if known == "auto" and arguments else known
    raise ProgramError(f"no way to share is called {asked!r}", hint=did_you_mean(asked, SHARINGS))


class Builder:
    """Builds what interests need, and knows what is built."""

    def __init__(self, db: Database, catalog: Catalog, rules: RuleStore, limits: Limits) -> None:
        self.db = db
        self.catalog = catalog
        self.rules = rules
        self.limits = limits
        self.answers: dict[tuple[str, bool], Answer] = {}  # by rule, and whether trunks are reused
        self._number = 0

    def relation(self, name: str) -> Relation:
        """The columns of a rule or base relation."""
        facts = self.catalog.facts.get(name)
        if facts is not None:
            return facts.declared.in_program()
        if name not in self.rules.by_name:
            hint = did_you_mean(name, [*self.rules.names(), *self.catalog.facts])
            raise UndefinedName(f"no rule or relation is called {name!r}", hint=hint)
        found = self.rules.relation(name)
        return found if self.parameters(name) is None else replace(found, columns=found.columns[1:])  # no token

    def parameters(self, name: str) -> Relation | None:
        """The parameters of a query that has some."""
        return self.rules.by_name[name].text.parameters if name in self.rules.by_name else None

    def program(self, name: str, cut: frozenset[str] = frozenset(), beside: Text | None = None) -> Program:
        """What an answer needs."""
        return self.rules.program([name], self.catalog.relations(), cut, beside)

    # Answers for all

    def answer(self, name: str, reuse: bool = False) -> Answer:
        """The answer of a rule that everybody shares, built if it is not there."""
        reuse = reuse and bool(self.trunks(name))
        found = self.answers.get((name, reuse))
        if found is None or not found.living:
            found = self.answers[name, reuse] = self.build(name, reuse)
        return found

    def build(self, name: str, reuse: bool, label: str | None = None, joins: str = "auto") -> Answer:
        """A new answer of a rule; with `reuse`, the rules that it reads are answers of their own."""
        relation = self.relation(name)
        parameters = self.parameters(name)
        if parameters is not None:
            names = ", ".join(column.name for column in parameters.columns[1:])
            raise ProgramError(f"{name} has parameters", detail=f"They are {names}.", hint="Give them as arguments.")
        self.limits.check_memory(name)
        cut = self.trunks(name) if reuse else frozenset()
        trunks: dict[str, Answer] = {}
        usual = f"{'trunk' if reuse else 'answer'} {name}"
        if usual in self.db.outputs:  # one that failed, and that others have not let go of
            usual = self.label(usual)
        with self.synthesis(trunks, joins) as made:
            for each in sorted(cut):
                trunk = trunks[each] = self.answer(each, reuse=True)
                trunk.users += 1
                made.held.append(trunk.release)
            collection = made.collections(self.program(name, cut))[name]
            output = made.install(collection, label or usual)
        self.settle()
        return Answer(relation, output, made.held)

    def trunks(self, name: str) -> frozenset[str]:
        """The rules that a rule reads, of those that do not depend on it in turn."""
        program = self.program(self.relation(name).name)
        graph: dict[str, list[str]] = {relation.name: [] for relation in program.relations}
        for edge in dependencies(program):
            graph[edge.reader].append(edge.read)
        together = next(set(part) for part in strongly_connected(graph) if name in part)
        found: set[str] = set()
        queue = sorted(together)
        seen = set(queue)
        for each in queue:
            for read in graph[each]:
                if read in seen:
                    continue
                seen.add(read)
                if read.startswith("@"):  # a part of the rule that nobody named
                    queue.append(read)
                elif read in self.rules.by_name:
                    found.add(read)
        return frozenset(found)

    def filtered(self, name: str, argument: dict[str, Any]) -> Private:
        """A filter on the answer for all."""
        trunk = self.answer(name)
        condition: Any = None
        for column, value in argument.items():
            part = col(column) == lit(value)
            condition = part if condition is None else condition & part
        trunk.users += 1
        try:
            rows = trunk.collection().filter(condition)
            output = rows.output(self.label(f"filter of {name}"), keep=False)
        except BaseException:
            trunk.release()
            raise
        return Private(self.relation(name), output, [trunk.release], f"a filter on the answer of {name} that all share")

    # Inside

    def forget_unused(self) -> None:
        """Leave out what nobody uses any more."""
        self.answers = {key: answer for key, answer in self.answers.items() if answer.users > 0}

    def synthesis(self, trunks: dict[str, Answer], joins: str = "auto") -> Synthesis:
        """The making of a dataflow, on base relations and some trunks."""

        def find(name: str) -> Indexed:
            return trunks[name] if name in trunks else self.catalog.facts[name].input

        return Synthesis(self.db, find, self.limits.rounds, joins)

    def settle(self) -> None:
        """See that what was built has all it reads."""
        if self.db.dirty:  # a query without atoms reads a row that is always there
            self.db.advance()

    def label(self, text: str) -> str:
        """A name that no other dataflow has."""
        self._number += 1
        return f"{text} #{self._number}"


def schema_without_tokens(relation: Relation) -> Schema:
    """The columns that a client sees; none if the answer is only whether something holds."""
    return schema_of(relation) if relation.columns else Schema((), ())

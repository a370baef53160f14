"""Choose the dataflow that serves an interest, and build it.

    without arguments   nothing    a private dataflow from base relations
                        auto       one answer for all interests in the rule, from base relations
                        answers    one answer for all; each rule that it reads is a shared answer as well
    with arguments      tenants    one dataflow for all arguments (auto)
                        answers    a private filter on the one answer for all
                        nothing    a private dataflow for these arguments

By default a new dataflow derives each rule that its answer reads again. Constants and joins of the answer then restrict
these rules, and only the indexes of base relations are shared. With "answers" the new dataflow reads a shared answer of
each rule instead; it is derived once for all, in full. Clients may still use the former name of "answers", "trunk".

`AnswerBuilder` builds answers and filters on them; `TenantBuilder` builds dataflows for arguments:

    by columns of a rule        rules are rewritten to compute only the rows that the arguments demand
    by parameters of a query    the query reads the relation of parameters
    by constants of a query     the constants become parameters, so that queries of the same shape share a dataflow

In each case arguments are rows of an input that begin with the token of a tenant, and so do the rows of the answer.

Only requests with equal limits share a dataflow, so that the limits of one client stop no query of another. A shared
answer counts for the session and the tenant that asked first, until a request of another one reads it. Dataflows for
arguments that are shared count for none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, TypeVar, get_args

from kpg.api.collection import Collection
from kpg.api.query_limits import QueryAdmission, QueryLimits
from kpg.columns.functions import col, lit
from kpg.columns.pause_points import pause
from kpg.columns.schema import Schema
from kpg.errors import InUse, ProgramError, UndefinedName
from kpg.query.demand import magic_sets
from kpg.query.ir.literals import atoms
from kpg.query.ir.program import Program, Relation, RelationColumn
from kpg.query.ir.rewrites.stratify import dependencies, strongly_connected
from kpg.query.lower.lower_program import schema_of
from kpg.query.lower.value_expressions import column_type
from kpg.query.source_text import did_you_mean
from kpg.service.base_relations import Catalog
from kpg.service.dataflow_builder import DataflowBuilder, QuerySource
from kpg.service.dataflows import AnswerFilter, MaintainedAnswer, TenantDataflow
from kpg.service.languages import RuleText, read_edn
from kpg.service.limits import Limits
from kpg.service.named_relations import words_of
from kpg.service.planner import Planner
from kpg.service.relation_declarations import is_attribute
from kpg.service.rules import RuleStore
from kpg.service.templates import TOKEN, lift_constants, shape
from kpg.service.tenant_parts import TenantPart, TokenFilter

if TYPE_CHECKING:
    from kpg.api.contracts import Database

Sharing = Literal["auto", "nothing", "answers", "tenants"]
SHARINGS: tuple[Sharing, ...] = get_args(Sharing)
FORMER_NAMES: dict[str, Sharing] = {"trunk": "answers"}  # accepted from clients of earlier versions
Item = TypeVar("Item")
ITEMS_PER_PAUSE: Final = 256  # arguments that are checked: less than a millisecond
Arguments: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]]
ArgumentRow: TypeAlias = tuple[Any, ...]
SCALARS = (bool, int, float, str)
SHAPE: Final = "@shape"  # in the key of a dataflow for queries of one shape
# Given a builder and the input of arguments: the rows of the answer with tokens, and an explanation.
BuildRows: TypeAlias = Callable[[DataflowBuilder, Collection], tuple[Collection, str]]


def check_sharing(name: str, arguments: bool) -> Sharing:
    """Return the way of sharing with this name; raise if there is none."""
    name = FORMER_NAMES.get(name, name)
    for sharing in SHARINGS:
        if sharing == name:
            return "tenants" if sharing == "auto" and arguments else sharing
    raise ProgramError(f"no way of sharing is called {name!r}", hint=did_you_mean(name, SHARINGS))


class AnswerKey(NamedTuple):
    """What interests that share an answer have in common."""

    name: str
    reuse: bool  # whether it reads shared answers
    limits: QueryLimits


class TenantKey(NamedTuple):
    """What tenants that share a dataflow have in common."""

    name: str  # of a rule, or SHAPE
    columns: tuple[str, ...]  # that arguments bind, or the shape of a query
    limits: QueryLimits


class AnswerBuilder:
    """Builds answers, and keeps those that interests share."""

    def __init__(
        self,
        db: Database,
        catalog: Catalog,
        rules: RuleStore,
        limits: Limits,
        planner: Planner,
        guard: QueryAdmission,
    ) -> None:
        self.db = db
        self.catalog = catalog
        self.rules = rules
        self.limits = limits
        self.planner = planner
        self.guard = guard
        self.answers: dict[AnswerKey, MaintainedAnswer] = {}
        self._last_label = 0
        self._labels: set[str] = set()  # of the dataflows that are being built

    def relation(self, name: str) -> Relation:
        """Return the relation of a rule or base relation as clients see it; raise if there is none."""
        base = self.catalog.relations.get(name)
        if base is not None:
            return base.declaration.in_program()
        if name not in self.rules.by_name:
            hint = did_you_mean(name, [*self.rules.names(), *self.catalog.relations])
            raise UndefinedName(f"no rule or relation is called {name!r}", hint=hint)
        relation = self.rules.relation(name)
        if self.parameters(name) is None:
            return relation
        return replace(relation, columns=relation.columns[1:])  # without the token

    def parameters(self, name: str) -> Relation | None:
        """Return the relation of a query's parameters, if it has any."""
        return self.rules.by_name[name].text.parameters if name in self.rules.by_name else None

    def mentioned(self, language: str, words: set[str]) -> dict[str, Relation]:
        """Return the relations that a text with some words can name."""
        attributes: dict[str, Relation] = {}
        if language == "edn":  # a pattern may stand for all attributes
            attributes = {name: one for name, one in self.catalog.named.by_name.items() if is_attribute(name)}
        return attributes | self.catalog.named.mentioned(words) | self.rules.readable.mentioned(words)

    def program(self, name: str, cut: frozenset[str] = frozenset(), unregistered: RuleText | None = None) -> Program:
        """Return the program that an answer needs."""
        return self.rules.program([name], self.catalog.named.by_name, cut, unregistered)

    def compiled_program(
        self, name: str, cut: frozenset[str] = frozenset(), unregistered: RuleText | None = None
    ) -> Program:
        """Return the program that an answer needs, compiled."""
        with self.db.in_turns():
            program = self.planner.compile(self.program(name, cut, unregistered))
        self.guard.check_relations(max((sum(1 for _ in atoms(rule.body)) for rule in program.rules), default=0))
        return program

    # Answers

    def answer(self, name: str, reuse: bool = False) -> MaintainedAnswer:
        """Return the answer that all interests in a rule share, built if necessary."""
        reuse = reuse and bool(self.rules_read(name))
        answer = self.living(name, reuse)
        if answer is None:
            built = self.build(name, reuse)
            answer = self.living(name, reuse)  # of another request, which ran while this one planned or built
            if answer is not None:
                built.use()
                built.release()
                return answer
            answer = self.answers[AnswerKey(name, reuse, self.request_limits)] = built
        return answer

    def living(self, name: str, reuse: bool) -> MaintainedAnswer | None:
        """Return the answer that this request can share, if it is built; its session reads it from now on."""
        answer = self.answers.get(AnswerKey(name, reuse, self.request_limits))
        if answer is None or not answer.living:
            return None
        answer.stay_in_groups(self.guard.groups)
        return answer

    @property
    def request_limits(self) -> QueryLimits:
        """The limits of the request that is being served, with the number of rounds that its recursions may take."""
        limits = self.guard.current
        return replace(limits, rounds=limits.rounds or self.limits.rounds)

    def build(self, name: str, reuse: bool, label: str | None = None, joins: str = "auto") -> MaintainedAnswer:
        """Build a new answer of a rule; with `reuse` it reads shared answers of the rules it depends on."""
        relation = self.relation(name)
        parameters = self.parameters(name)
        if parameters is not None:
            names = ", ".join(column.name for column in parameters.columns[1:])
            raise ProgramError(f"{name} has parameters", detail=f"They are {names}.", hint="Give them as arguments.")
        self.limits.check_memory(name)
        cut = self.rules_read(name) if reuse else frozenset()
        shared: dict[str, MaintainedAnswer] = {}
        texts = dict(self.rules.by_name)
        default_label = f"{'shared answer' if reuse else 'answer'} {name}"
        with self.dataflow_builder(shared, joins) as dataflow:
            for read in sorted(cut):
                answer = shared[read] = self.answer(read, reuse=True)
                answer.use()
                dataflow.held.append(answer.release)
            program = self.compiled_program(name, cut)
            with dataflow.in_turns(program):
                collection = dataflow.collections(program)[name]
                with self._using_label(label or default_label) as free:
                    output = dataflow.install(collection, free)
            self.require_same_rules(name, program, texts)
            self.flush()
            return MaintainedAnswer(relation, output, dataflow.held, list(shared.values()))

    @contextmanager
    def _using_label(self, label: str) -> Iterator[str]:
        """Return a label that no other dataflow has, and that none gets in this block."""
        if label in self.db.outputs or label in self._labels:  # a failed one, or one that another request builds
            label = self.unique_label(label)
        self._labels.add(label)
        try:
            yield label
        finally:
            self._labels.discard(label)

    def require_same_rules(self, name: str, program: Program, texts: Mapping[str, Any]) -> None:
        """Raise if rules of a program were replaced by another request while it was planned or built."""
        changed = [
            relation.name
            for relation in program.relations
            if self.rules.by_name.get(relation.name) is not texts.get(relation.name)
        ]
        if changed:
            raise InUse(f"the rules of {changed[0]} have changed while {name} was built", hint="Try again.")

    def rules_read(self, name: str) -> frozenset[str]:
        """Return the rules that a rule reads and that do not depend on it in turn."""
        program = self.program(self.relation(name).name)
        graph: dict[str, list[str]] = {relation.name: [] for relation in program.relations}
        for edge in dependencies(program):
            graph[edge.reader].append(edge.read)
        component = next(set(part) for part in strongly_connected(graph) if name in part)
        rules: set[str] = set()
        queue = sorted(component)
        seen = set(queue)
        for reader in queue:
            for read in graph[reader]:
                if read in seen:
                    continue
                seen.add(read)
                if read.startswith("@"):  # a generated part of the rule itself
                    queue.append(read)
                elif read in self.rules.by_name:
                    rules.add(read)
        return frozenset(rules)

    def build_filter(self, name: str, argument: dict[str, Any]) -> AnswerFilter:
        """Build a filter for one interest, on the answer that all share."""
        answer = self.answer(name)
        condition: Any = None
        for column, value in argument.items():
            equal = col(column) == lit(value)
            condition = equal if condition is None else condition & equal
        answer.use()
        try:
            rows = self.db.installer.shared(answer.output, answer.output.schema).filter(condition)
            output = self.db.installer.output(rows.node, self.unique_label(f"filter of {name}"), keep=False)
        except BaseException:
            answer.release()
            raise
        return AnswerFilter(self.relation(name), output, answer, f"a filter on the shared answer of {name}")

    def forget_unused(self) -> None:
        """Remove answers without users."""
        self.answers = {key: answer for key, answer in self.answers.items() if answer.users > 0}

    def dataflow_builder(self, shared: dict[str, MaintainedAnswer], joins: str = "auto") -> DataflowBuilder:
        """Return a builder of one dataflow on base relations and some shared answers."""

        def find(name: str) -> QuerySource:
            return shared[name].output if name in shared else self.catalog.relations[name].source

        return DataflowBuilder(self.db, find, self.request_limits.rounds, joins)

    def flush(self) -> None:
        """Close the open time if building inserted rows: a query without atoms reads a constant row."""
        if self.db.pending:
            self.db.advance(wait=not self.db.answers_lag)

    def unique_label(self, text: str) -> str:
        """Return a label that no other dataflow has."""
        self._last_label += 1
        return f"{text} #{self._last_label}"


class TenantBuilder:
    """Builds dataflows for arguments, and keeps those that tenants share."""

    def __init__(self, answers: AnswerBuilder) -> None:
        self.answers = answers
        self.dataflows: dict[TenantKey, TenantDataflow] = {}
        self.failed: set[TenantKey] = set()  # the keys of failed shared dataflows

    def rows(self, name: str, arguments: Arguments) -> tuple[tuple[str, ...], list[ArgumentRow]]:
        """Return the columns that arguments bind, in order, and one row of values per argument."""
        parameters = self.answers.parameters(name)
        relation = self.answers.relation(name)
        names = [column.name for column in (relation.columns if parameters is None else parameters.columns[1:])]
        with self.answers.db.in_turns():
            all_arguments = argument_list(name, arguments)
            bound = set(all_arguments[0])
            for argument in with_pauses(all_arguments):
                for column in argument:
                    if column not in names:
                        raise UndefinedName(f"{name} has no argument {column!r}", hint=did_you_mean(column, names))
                if not argument or set(argument) != bound:
                    raise ProgramError(
                        f"the arguments for {name} do not bind the same columns",
                        hint="Give each a value for the same columns, at least one.",
                    )
        missing = [] if parameters is None else [column for column in names if column not in all_arguments[0]]
        if missing:
            raise ProgramError(f"{name} has no value for its parameter {missing[0]!r}")
        columns = tuple(column for column in names if column in all_arguments[0])
        return columns, [tuple(argument[column] for column in columns) for argument in all_arguments]

    def shared(self, name: str, columns: tuple[str, ...]) -> TenantDataflow:
        """Return the dataflow of all tenants that bind some columns of a rule, built if necessary.

        After a shared dataflow has failed, each new tenant of its key gets a dataflow of its own. Arguments that cannot
        be computed then fail for their own tenant only.
        """
        key = TenantKey(name, columns, self.answers.request_limits)
        return self._find_or_build(key, lambda: self.build(name, columns))

    def _find_or_build(self, key: TenantKey, build: Callable[[], TenantDataflow]) -> TenantDataflow:
        dataflow = self.dataflows.get(key)
        if dataflow is not None and not dataflow.living:
            self.failed.add(key)
        if key in self.failed:
            return build()
        if dataflow is None:
            built = build()
            dataflow = self.dataflows.get(key)
            if dataflow is not None and dataflow.living:  # of another request, which ran while this one built
                built.discard()
                return dataflow
            dataflow = self.dataflows[key] = built
            dataflow.output.stay_in_groups(())  # it does not belong to the first of its tenants
        return dataflow

    def build(self, name: str, columns: tuple[str, ...], joins: str = "auto") -> TenantDataflow:
        """Build a new dataflow for arguments."""
        if self.answers.parameters(name) is not None:
            return self._for_query(name, self.answers.rules.by_name[name].text, None, joins)
        relation = self.answers.relation(name)
        bound = tuple(column for column in relation.columns if column.name in columns)
        texts = dict(self.answers.rules.by_name)
        program = self.answers.compiled_program(name)

        def rows(dataflow: DataflowBuilder, arguments: Collection) -> tuple[Collection, str]:
            return self._rows_of_rule(dataflow, relation, program, columns, arguments)

        return self._install(name, bound, joins, rows, program, texts)

    def shared_by_shape(self, name: str) -> tuple[TenantDataflow, ArgumentRow]:
        """Return the dataflow of all queries with the shape of this one, and the constants of this one."""
        registered = self.answers.rules.find(name)
        text = registered.text
        if text.query is None or text.parameters is not None:
            hint = "Give arguments: without them all interests share one answer anyway."
            raise ProgramError(f"{name} is not an EDN query whose constants can become arguments", hint=hint)
        template = lift_constants(text.query)
        if not template.values:
            hint = 'Use sharing="auto": all interests share one answer.'
            raise ProgramError(f"{name} has no constants", hint=hint)
        types = [type(value).__name__ for value in template.values]
        key = TenantKey(SHAPE, (shape(template.query), *types), self.answers.request_limits)

        def build() -> TenantDataflow:
            label = self.answers.unique_label("shape")
            existing = self.answers.mentioned("edn", words_of(registered.source))
            others = {relation: columns for relation, columns in existing.items() if relation != name}
            text = read_edn([template.query], label, others, template)
            return self._for_query(label, text, text)

        return self._find_or_build(key, build), template.values

    def forget_unused(self) -> None:
        """Remove dataflows without tenants; the keys of failed ones are remembered."""
        self.failed |= {key for key, dataflow in self.dataflows.items() if not dataflow.living and dataflow.users > 0}
        self.dataflows = {key: dataflow for key, dataflow in self.dataflows.items() if dataflow.users > 0}

    # Building

    def _for_query(
        self, name: str, text: RuleText, unregistered: RuleText | None, joins: str = "auto"
    ) -> TenantDataflow:
        """Build a dataflow for the parameters of a query, whether it is registered or not."""
        parameters = text.parameters
        assert parameters is not None

        texts = dict(self.answers.rules.by_name)
        program = self.answers.compiled_program(name, unregistered=unregistered)

        def rows(dataflow: DataflowBuilder, arguments: Collection) -> tuple[Collection, str]:
            collection = dataflow.collections(program, {parameters.name: arguments})[name]
            return collection, f"{name} is a query over its parameters"

        return self._install(name, parameters.columns[1:], joins, rows, program, texts)

    def _rows_of_rule(
        self,
        dataflow: DataflowBuilder,
        relation: Relation,
        program: Program,
        columns: tuple[str, ...],
        arguments: Collection,
    ) -> tuple[Collection, str]:
        """Return the rows of a rule with the token of each tenant that asks for them, and an explanation."""
        rows, reason = self._demanded_rows(dataflow, relation.name, program, columns, arguments)
        routed = rows.join(arguments, on=columns)
        return routed.select(**{TOKEN: col(TOKEN), **{name: col(name) for name in rows.schema.names}}), reason

    def _demanded_rows(
        self,
        dataflow: DataflowBuilder,
        name: str,
        program: Program,
        columns: tuple[str, ...],
        arguments: Collection,
    ) -> tuple[Collection, str]:
        """Return a superset of the rows that the arguments ask for, and an explanation."""
        if name in self.answers.catalog.relations:
            return dataflow.collections(program)[name], f"{name} is a base relation, looked up by its arguments"
        demand = magic_sets(program, name, columns)
        seeds = schema_of(demand.program.by_name()[demand.seeds]).names
        seeded = arguments.select(**{seed: col(column) for seed, column in zip(seeds, columns, strict=True)}).distinct()
        return dataflow.collections(demand.program, {demand.seeds: seeded})[demand.answer], demand.reason

    def _install(
        self,
        name: str,
        columns: Sequence[RelationColumn],
        joins: str,
        build_rows: BuildRows,
        program: Program,
        texts: Mapping[str, Any],
    ) -> TenantDataflow:
        """Build a dataflow; others run meanwhile if its program is large. It was planned with these texts."""
        answers = self.answers
        answers.limits.check_memory(name)
        label = answers.unique_label(f"{name} by {', '.join(column.name for column in columns)}")
        schema = Schema.of({TOKEN: int, **{column.name: column_type(column.kind) for column in columns}})
        parameters = answers.db.input(f"parameters of {label}", schema, keep_on_disk=False)
        parameters.keep_by(*[column.name for column in columns])
        reasons: list[str] = []
        limits = answers.guard.current  # also of the parts that it is divided into, whichever request does that

        def build_part(tokens: TokenFilter) -> TenantPart:
            with (
                answers.guard.using(limits),
                answers.dataflow_builder({}, joins) as dataflow,
                dataflow.in_turns(program),
            ):
                rows, reason = build_rows(dataflow, tokens.of(parameters))
                reasons.append(reason)
                part_label = answers.unique_label(f"tenants of {label}") if len(reasons) > 1 else f"tenants of {label}"
                output = dataflow.install(rows, part_label, keep=False)
            return TenantPart(tokens, output, dataflow.held)

        part: TenantPart | None = None
        try:
            part = build_part(TokenFilter())
            answers.require_same_rules(name, program, texts)
            answers.flush()
            return TenantDataflow(build_part, part, parameters, reasons[0])
        except BaseException:  # also if it fails on its first rows
            if part is not None:
                part.release()
            parameters.drop()
            raise


def with_pauses(items: Sequence[Item]) -> Iterator[Item]:
    """Yield some items, with a pause after each few hundred."""
    for start in range(0, len(items), ITEMS_PER_PAUSE):
        pause()
        yield from items[start : start + ITEMS_PER_PAUSE]


def argument_list(name: str, arguments: Any) -> list[Mapping[str, Any]]:
    """Return one argument or several as a list; raise if they are neither."""
    hint = 'Give one, as in {"x": 1}, or a list of them.'
    all_arguments = [arguments] if isinstance(arguments, Mapping) else arguments
    if not isinstance(all_arguments, (list, tuple)) or not all_arguments:
        raise ProgramError(f"no argument for {name}", hint=hint)
    for argument in with_pauses(all_arguments):
        if not isinstance(argument, Mapping) or not all(isinstance(value, SCALARS) for value in argument.values()):
            raise ProgramError(f"{argument!r} is no argument for {name}", hint=hint)
    return list(all_arguments)


def client_schema(relation: Relation) -> Schema:
    """Return the columns that a client sees; none if the answer is only whether something holds."""
    return schema_of(relation) if relation.columns else Schema((), ())
